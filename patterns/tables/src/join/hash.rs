//! The in-memory sides of hash joins, semi-joins and anti-joins.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use keyloom::{Error, KeyBuf, Pack, Result, pack};

/// The build side of a hash join: the rows of a small side in memory, by their keys. It is read
/// once and can be used for any number of joins. It reflects the snapshot from which it was read.
pub struct BuildSide<K, V> {
    rows: HashMap<KeyBuf, Vec<Arc<V>>>,
    len: usize,
    key: PhantomData<fn(K)>,
}

impl<K: Pack, V> BuildSide<K, V> {
    /// Reads all of `rows`, such as the range of a table, but no more than `most`.
    ///
    /// # Errors
    /// The errors of `rows`; [`Error::Other`](keyloom::Error::Other) that names the limit if there
    /// are more than `most` rows.
    pub fn read(rows: impl IntoIterator<Item = Result<(K, V)>>, most: usize) -> Result<Self> {
        let mut side = Self { rows: HashMap::new(), len: 0, key: PhantomData };
        for row in rows {
            let (key, value) = row?;
            side.len += 1;
            refuse_more(side.len, most)?;
            side.rows.entry(pack(&key)).or_default().push(Arc::new(value));
        }
        Ok(side)
    }

    /// The rows with this key, in the order in which they were read.
    ///
    /// ```
    /// use keyloom_tables::join::BuildSide;
    /// let side = BuildSide::read([("a", 1), ("b", 2), ("a", 3)].map(Ok), 10)?;
    /// assert_eq!(side.get(&"a").iter().map(|row| **row).collect::<Vec<_>>(), [1, 3]);
    /// assert!(side.get(&"c").is_empty());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn get(&self, key: &K) -> &[Arc<V>] {
        self.rows.get(&pack(key)).map_or(&[], Vec::as_slice)
    }
}

impl<K, V> BuildSide<K, V> {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<K, V> fmt::Debug for BuildSide<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuildSide").field("len", &self.len).finish_non_exhaustive()
    }
}

/// A set of keys in memory, for [`semi_join`](super::Joins::semi_join) and
/// [`anti_join`](super::Joins::anti_join).
pub struct KeySet<K> {
    keys: HashSet<KeyBuf>,
    key: PhantomData<fn(K)>,
}

impl<K: Pack> KeySet<K> {
    /// Reads all of `keys`, but no more than `most` distinct keys.
    ///
    /// # Errors
    /// The errors of `keys`; [`Error::Other`](keyloom::Error::Other) that names the limit if there
    /// are more than `most` distinct keys.
    pub fn read(keys: impl IntoIterator<Item = Result<K>>, most: usize) -> Result<Self> {
        let mut set = HashSet::new();
        for key in keys {
            set.insert(pack(&key?));
            refuse_more(set.len(), most)?;
        }
        Ok(Self { keys: set, key: PhantomData })
    }

    /// Whether `key` is in the set.
    ///
    /// ```
    /// use keyloom_tables::join::KeySet;
    /// let set = KeySet::read([Ok(1), Ok(3), Ok(3)], 2)?;
    /// assert!(set.contains(&3) && !set.contains(&2));
    /// assert!(KeySet::read([Ok(1), Ok(2), Ok(3)], 2).is_err());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn contains(&self, key: &K) -> bool {
        self.keys.contains(&pack(key))
    }
}

impl<K> KeySet<K> {
    /// The number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

impl<K> fmt::Debug for KeySet<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySet").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
#[error(
    "the side that is kept in memory has more than {0} rows; raise the bound, or use a lookup or a merge join, which keep neither side"
)]
struct TooManyRows(usize);

fn refuse_more(rows: usize, most: usize) -> Result<()> {
    if rows <= most { Ok(()) } else { Err(Error::other(TooManyRows(most))) }
}
