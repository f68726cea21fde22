//! Computes the derived data that a table should have, by key and in bounded memory, and pairs it
//! with the stored data.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::Deref;

use keyloom::value::Codec;
use keyloom::{Entry, Error, KeyBuf, KeyRange, Order, Reader, Result};
use keyloom_kit::RecordKey;
use keyloom_kit::derived::is_undecodable;

use crate::table::{Table, record};

/// The maximum number of keys, with their gathered values, that one pass over a table keeps in
/// memory.
// A key has at most 511 bytes, so these keys take up to some 50 MB. For each further 100,000 keys,
// the table is read again.
pub(super) const KEPT: usize = 100_000;

/// The derived data that a table should have for the `kept` smallest keys of a range.
pub(super) struct Pass<A> {
    /// The number of records that were read.
    pub(super) records: u64,
    pub(super) gathered: BTreeMap<KeyBuf, A>,
    /// The part of the range that `gathered` covers completely.
    pub(super) done: KeyRange<'static>,
    /// The rest of the range, for the next pass.
    pub(super) left: Option<KeyRange<'static>>,
}

/// Reads all records of `table` and gathers the items that `give` returns for them, for the `kept`
/// smallest keys in `range`.
///
/// There may be more groups than fit in memory, and records are not sorted by group. So when more
/// than `kept` keys are gathered, the largest key is dropped. A later pass gathers it.
///
/// For a record that does not decode, `give` receives no value. If `give` returns items anyway,
/// `lost` is called with the key but without an error, and the items are gathered. If `give`
/// returns `None`, `lost` also receives the error, and the record is skipped. An error that `lost`
/// returns ends the pass.
pub(super) fn gather<K: RecordKey, V, C: Codec<V>, I, A: Default>(
    table: &Table<K, V, C>,
    reader: &impl Reader,
    range: &KeyRange<'static>,
    kept: usize,
    give: impl Fn(&K, Option<&V>) -> Option<Vec<(KeyBuf, I)>>,
    fold: impl Fn(&mut A, I),
    mut lost: impl FnMut(KeyBuf, Option<Error>) -> Result<()>,
) -> Result<Pass<A>> {
    let mut gathered = BTreeMap::<KeyBuf, A>::new();
    let (mut dropped, mut records): (Option<KeyBuf>, u64) = (None, 0);
    for entry in reader.range(table.space().self_and_children(), Order::Ascending)? {
        let entry = entry?;
        let stored_at = KeyBuf::from_slice(&entry.0);
        let given = match record::<_, K, V, C>(table.space(), entry) {
            Ok((key, value)) => give(&key, Some(&value)),
            Err(error) if is_undecodable(&error) => {
                let key = table.space().unpack::<K>(&stored_at).ok();
                let given = key.and_then(|key| give(&key, None));
                lost(stored_at, given.is_none().then_some(error))?;
                given
            }
            Err(error) => return Err(error),
        };
        let Some(given) = given else { continue };
        records += 1;
        for (key, item) in given {
            let comes_later = dropped.as_ref().is_some_and(|dropped| key >= *dropped);
            if comes_later || !range.contains(&key) {
                continue;
            }
            fold(gathered.entry(key).or_default(), item);
            if gathered.len() > kept.max(1) {
                dropped = gathered.pop_last().map(|(key, _)| key);
            }
        }
    }
    let Some(dropped) = dropped else {
        return Ok(Pass { records, gathered, done: range.clone(), left: None });
    };
    let done = range.clone().before(&dropped).into_owned();
    let left = range.clone().intersect(KeyRange::starting_at(&dropped)).into_owned();
    Ok(Pass { records, gathered, done, left: Some(left) })
}

/// A key with its gathered value and its stored value. One of the two may be missing.
pub(super) type Pair<A, B> = (KeyBuf, Option<A>, Option<B>);

/// A merge join of the expected and the stored entries, which are both in key order.
pub(super) struct SideBySide<G: Iterator, I: Iterator> {
    gathered: Peekable<G>,
    stored: Peekable<I>,
}

impl<G: Iterator, I: Iterator> SideBySide<G, I> {
    pub(super) fn new(gathered: impl IntoIterator<IntoIter = G>, stored: I) -> Self {
        Self { gathered: gathered.into_iter().peekable(), stored: stored.peekable() }
    }
}

impl<A, B, G, I> Iterator for SideBySide<G, I>
where
    B: Deref<Target = [u8]>,
    G: Iterator<Item = Result<(KeyBuf, A)>>,
    I: Iterator<Item = Result<Entry<B>>>,
{
    type Item = Result<Pair<A, B>>;

    fn next(&mut self) -> Option<Self::Item> {
        let (take_gathered, take_stored) = match (self.gathered.peek(), self.stored.peek()) {
            (None, None) => return None,
            (Some(Err(_)), _) | (Some(_), None) => (true, false),
            (_, Some(Err(_))) | (None, Some(_)) => (false, true),
            (Some(Ok((gathered, _))), Some(Ok((stored, _)))) => {
                (gathered[..] <= stored[..], stored[..] <= gathered[..])
            }
        };
        let gathered = self.gathered.next_if(|_| take_gathered).transpose();
        let stored = self.stored.next_if(|_| take_stored).transpose();
        let pair =
            |gathered: Option<(KeyBuf, A)>, stored: Option<Entry<B>>| match (gathered, stored) {
                (Some((key, gathered)), stored) => {
                    Some((key, Some(gathered), stored.map(|(_, value)| value)))
                }
                (None, Some((key, value))) => Some((KeyBuf::from_slice(&key), None, Some(value))),
                (None, None) => None,
            };
        match (gathered, stored) {
            (Ok(gathered), Ok(stored)) => pair(gathered, stored).map(Ok),
            (Err(error), _) | (_, Err(error)) => Some(Err(error)),
        }
    }
}
