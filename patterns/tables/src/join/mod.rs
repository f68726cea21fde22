//! Application-side joins: how are records of several tables read together, without a query
//! planner?
//!
//! A key-value store has no joins, so the program joins rows itself. The method matters: one `get`
//! per row costs one round trip per row. Each join here is an adaptor of an iterator of `Result`
//! rows, such as [`Table::range`](crate::Table::range) and [`Index::range`](crate::Index::range)
//! return. A join returns such an iterator as well, so joins can be chained. All joins stream: no
//! join reads all of its left rows before it returns the first row.
//!
//! ```
//! use keyloom::{Memory, Result, Store, Subspace};
//! use keyloom_tables::Table;
//! use keyloom_tables::join::Joins;
//! let users = Table::<u32, String>::new(&Subspace::new("users"));
//! let messages = Table::<(u32, u64), String>::new(&Subspace::new("messages")); // (author, number)
//! let store = Memory::new();
//! store.transact(|txn| {
//!     users.put_many(txn, [(1, "Ada".to_owned()), (2, "Bob".to_owned())])?;
//!     messages.put_many(txn, [((2, 1), "hello".to_owned()), ((1, 2), "hi".to_owned())])
//! })?;
//! let snapshot = store.snapshot()?;
//! let lines = messages
//!     .range(&snapshot, ..)?
//!     .lookup_join(&snapshot, &users, |((author, _), _)| *author)
//!     .map(|row| row.map(|((_, text), author)| format!("{author}: {text}")))
//!     .collect::<Result<Vec<_>>>()?;
//! assert_eq!(lines, ["Ada: hi", "Bob: hello"]);
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Which join
//!
//! | right side | join | order of the output |
//! |---|---|---|
//! | a table, joined by its key | [`lookup_join`](Joins::lookup_join) | of the left rows |
//! | small, used often | [`hash_join`](Joins::hash_join) with a [`BuildSide`] | of the left rows; for equal keys, the order in which the right rows were read |
//! | in the same order as the left, by the same key | [`merge_join`](Joins::merge_join) | of both |
//! | a separate range for each of a few left rows | [`nested_loop_join`](Joins::nested_loop_join) | of the left rows; for each of them, the order of its range |
//! | a set of keys to test for | [`semi_join`](Joins::semi_join), [`anti_join`](Joins::anti_join) with a [`KeySet`] | of the left rows |
//!
//! An **inner** join returns the matching pairs. Its **left outer** form, `left_..`, returns every
//! left row at least once, with `None` if no right row matches. If keys repeat on either side,
//! every matching pair is returned.
//!
//! Keys are compared as packed bytes, both for equality and for order. So their order is the order
//! of the store, for every type of key. In a lookup join and a hash join, a left row may have no
//! key (`None`). Such a row matches nothing.
//!
//! # Layout
//!
//! A join stores nothing. [`Links`] stores many-to-many relations:
//!
//! | key | value |
//! |---|---|
//! | subspace, 0, left, right | the value of the link, as the codec writes it; nothing for `()` |
//! | subspace, 1, right, left | the format (1), one byte |
//!
//! A one-to-many relation needs no links: use a table whose key begins with the "one" side
//! (`(author, number)` above), or an [`Index`](crate::Index) by the "one" side.
//!
//! # Invariants
//!
//! * Every link is stored in both directions.
//! * A join returns no more rows after an error.
//!
//! # Cost
//!
//! The costs below do not include the reads of the left rows. n is the number of left rows, and b
//! the number of rows per batch (1,000 by default):
//!
//! | operation | cost | round trips | rows in memory |
//! |---|---|---|---|
//! | lookup join | 1 get per distinct key of a batch | n/b, rounded up | b, their records, and the cached records |
//! | hash, semi and anti join | nothing | 0 | the build side, which is bounded |
//! | merge join | reading the right rows once | 1 | the right rows of one key |
//! | nested-loop join | 1 range per left row | n | 1 |
//! | [`Links::link`], [`Links::unlink`] | 1 get; 2 keys written if something changes | 1 | |
//! | [`Links::rights_of`], [`Links::lefts_of`] | 1 range, which reads only what it returns; `lefts_of` [in a schema](Links::in_schema) costs 1 more get | 1 | 1 |
//! | [`Links::unlink_left`], [`Links::unlink_right`] | 1 range, n gets, 2 n keys written | 2 | n, which is bounded |
//! | [`Links::check`], [`Links::repair`] | see [`derived`](crate::derived) | | |
//!
//! # When not to use it
//!
//! If the same join runs often and its right side changes rarely, keep a denormalized copy of the
//! right side in the left record ([`denormalization`](crate::denormalize)). If two records are
//! always read and written together, merge them into one record.
//!
//! # Source
//!
//! "Application side joins" in I. Katsov, *NoSQL Data Modeling Techniques* (2012);
//! "Application-side joins" in C. Gormley and Z. Tong, *Elasticsearch: The Definitive Guide*
//! (2015). Relational databases use the same algorithms.

mod hash;
mod links;
mod lookup;
mod merge;
mod nested;

use std::sync::Arc;

use keyloom::value::Codec;
use keyloom::{Pack, Reader, Result};
use keyloom_kit::{RecordKey, until_error};

pub use hash::{BuildSide, KeySet};
pub use links::{Links, Reversed};
pub use lookup::Lookup;

use self::nested::pairs;

/// Adds the joins to every iterator of `Result<T>`; see the [module](self).
pub trait Joins<T>: Iterator<Item = Result<T>> + Sized {
    /// Pairs each row with the record of its key. Rows without a record are left out. `lookup` is a
    /// table, or a [`Lookup`] with other options. `key` returns the key of a row, or an `Option` of
    /// the key.
    ///
    /// Costs one round trip per batch. The record is shared (`Arc`), since many rows may have the
    /// same record.
    ///
    /// # Errors
    /// The errors of the rows and of [`Table::get_many`](crate::Table::get_many). If a batch fails,
    /// none of its rows are returned.
    fn lookup_join<R, K, V, C, F, O>(
        self,
        reader: &R,
        lookup: impl Into<Lookup<K, V, C>>,
        key: F,
    ) -> impl Iterator<Item = Result<(T, Arc<V>)>>
    where
        R: Reader,
        K: RecordKey,
        C: Codec<V>,
        F: FnMut(&T) -> O,
        O: Into<Option<K>>,
    {
        inner(self.left_lookup_join(reader, lookup, key))
    }

    /// Pairs each row with the record of its key, or with `None`; see
    /// [`lookup_join`](Joins::lookup_join).
    fn left_lookup_join<R, K, V, C, F, O>(
        self,
        reader: &R,
        lookup: impl Into<Lookup<K, V, C>>,
        key: F,
    ) -> impl Iterator<Item = Result<(T, Option<Arc<V>>)>>
    where
        R: Reader,
        K: RecordKey,
        C: Codec<V>,
        F: FnMut(&T) -> O,
        O: Into<Option<K>>,
    {
        lookup::lookup_join(self, reader, lookup.into(), key)
    }

    /// Pairs each row with each row of `side` that has the same key.
    ///
    /// ```
    /// use keyloom::{Memory, Result, Store, Subspace};
    /// use keyloom_tables::Table;
    /// use keyloom_tables::join::{BuildSide, Joins};
    /// let countries = Table::<String, String>::new(&Subspace::new("countries"));
    /// let store = Memory::new();
    /// store.transact(|txn| countries.put(txn, &"FR".into(), &"France".into()))?;
    /// let snapshot = store.snapshot()?;
    /// let side = BuildSide::read(countries.range(&snapshot, ..)?, 300)?;
    /// let cities = [("Paris", "FR"), ("Atlantis", "??")].into_iter().map(Ok);
    /// let found = cities.hash_join(&side, |(_, country)| country.to_string());
    /// let found = found.map(|row| row.map(|((city, _), country)| format!("{city}, {country}")));
    /// assert_eq!(found.collect::<Result<Vec<_>>>()?, ["Paris, France"]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of the rows.
    fn hash_join<K, V, F, O>(
        self,
        side: &BuildSide<K, V>,
        key: F,
    ) -> impl Iterator<Item = Result<(T, Arc<V>)>>
    where
        T: Clone,
        K: Pack,
        F: FnMut(&T) -> O,
        O: Into<Option<K>>,
    {
        inner(self.left_hash_join(side, key))
    }

    /// Pairs each row with each row of `side` that has the same key, or with `None`.
    ///
    /// # Errors
    /// The errors of the rows.
    fn left_hash_join<K, V, F, O>(
        self,
        side: &BuildSide<K, V>,
        key: F,
    ) -> impl Iterator<Item = Result<(T, Option<Arc<V>>)>>
    where
        T: Clone,
        K: Pack,
        F: FnMut(&T) -> O,
        O: Into<Option<K>>,
    {
        let mut key = key;
        let mut matches = move |row: &T| key(row).into().map_or(&[][..], |key| side.get(&key));
        pairs(self, move |row| Ok(matches(row).iter().cloned().map(Ok)))
    }

    /// Pairs each row with each row of `right` that has the same key. Both sides must be sorted by
    /// this key, as ranges of tables and indexes are.
    ///
    /// ```
    /// use keyloom::{Memory, Result, Store, Subspace};
    /// use keyloom_tables::join::Joins;
    /// use keyloom_tables::{Index, Table, entry};
    /// // The posts of users named John. Both ranges are in the order of the user.
    /// let by_name = Index::new(&Subspace::new("by_name"), |_, name: &String| entry(name));
    /// let users = Table::<u32, String>::new(&Subspace::new("users")).with(&by_name);
    /// let by_author = Index::new(&Subspace::new("by_author"), |_, author: &u32| entry(author));
    /// let posts = Table::<u32, u32>::new(&Subspace::new("posts")).with(&by_author);
    /// let store = Memory::new();
    /// store.transact(|txn| {
    ///     users.put_many(txn, [(1, "John"), (2, "Mary"), (3, "John")].map(|(id, name)| (id, name.to_owned())))?;
    ///     posts.put_many(txn, [(10, 3), (11, 2), (12, 1), (13, 3)])
    /// })?;
    /// let snapshot = store.snapshot()?;
    /// let johns = by_name.range(&snapshot, "John")?.map(|found| found?.record_key());
    /// let all = by_author.range(&snapshot, ..)?.map(|found| {
    ///     let found = found?;
    ///     Ok((found.parts()?, found.record_key()?))
    /// });
    /// let of_johns = johns.merge_join(all, |user| *user, |(author, _)| *author);
    /// let posts = of_johns.map(|row| row.map(|(_, (_, post))| post)).collect::<Result<Vec<_>>>()?;
    /// assert_eq!(posts, [12, 10, 13]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// If both sides are in descending order, the key functions must return [`Desc`](keyloom::Desc)
    /// of the key: `|user| Desc(*user)`.
    ///
    /// The join keeps the right rows of one key in memory, so choose the side with fewer rows per
    /// key as `right`.
    ///
    /// # Errors
    /// The errors of the rows of both sides; [`Error::Other`](keyloom::Error::Other) that names
    /// both keys if a side is not sorted, because rows would be missing.
    fn merge_join<U, J, P, F, G>(
        self,
        right: J,
        left_key: F,
        right_key: G,
    ) -> impl Iterator<Item = Result<(T, U)>>
    where
        T: Clone,
        U: Clone,
        J: Iterator<Item = Result<U>>,
        P: Pack,
        F: FnMut(&T) -> P,
        G: FnMut(&U) -> P,
    {
        inner(self.left_merge_join(right, left_key, right_key))
    }

    /// Pairs each row with each row of `right` that has the same key, or with `None`; see
    /// [`merge_join`](Joins::merge_join).
    fn left_merge_join<U, J, P, F, G>(
        self,
        right: J,
        left_key: F,
        right_key: G,
    ) -> impl Iterator<Item = Result<(T, Option<U>)>>
    where
        T: Clone,
        U: Clone,
        J: Iterator<Item = Result<U>>,
        P: Pack,
        F: FnMut(&T) -> P,
        G: FnMut(&U) -> P,
    {
        merge::merge_join(self, right, left_key, right_key)
    }

    /// Pairs each row with each row that `open` returns for it, such as a range of an index.
    ///
    /// ```
    /// use keyloom::{Memory, Result, Store, Subspace};
    /// use keyloom_tables::Table;
    /// use keyloom_tables::join::Joins;
    /// let messages = Table::<(u32, u64), String>::new(&Subspace::new("messages"));
    /// let store = Memory::new();
    /// store.transact(|txn| messages.put(txn, &(2, 1), &"hello".into()))?;
    /// let snapshot = store.snapshot()?;
    /// let friends = [1, 2, 3].into_iter().map(Ok);
    /// let heard = friends.nested_loop_join(|friend: &u32| messages.range(&snapshot, *friend));
    /// let heard = heard.map(|row| row.map(|(_, (_, text))| text)).collect::<Result<Vec<_>>>()?;
    /// assert_eq!(heard, ["hello"]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of the rows of both sides, and of `open`.
    fn nested_loop_join<U, J, F>(self, open: F) -> impl Iterator<Item = Result<(T, U)>>
    where
        T: Clone,
        J: Iterator<Item = Result<U>>,
        F: FnMut(&T) -> Result<J>,
    {
        inner(self.left_nested_loop_join(open))
    }

    /// Pairs each row with each row that `open` returns for it, or with `None`.
    ///
    /// # Errors
    /// The errors of [`nested_loop_join`](Joins::nested_loop_join).
    fn left_nested_loop_join<U, J, F>(self, open: F) -> impl Iterator<Item = Result<(T, Option<U>)>>
    where
        T: Clone,
        J: Iterator<Item = Result<U>>,
        F: FnMut(&T) -> Result<J>,
    {
        pairs(self, open)
    }

    /// Returns the rows whose key is in `keys`, each row once.
    ///
    /// ```
    /// use keyloom::Result;
    /// use keyloom_tables::join::{Joins, KeySet};
    /// let johns = KeySet::read([1, 3].into_iter().map(Ok), 100)?;
    /// let posts = [(10, 3), (11, 2), (12, 1)];
    /// let author = |(_, author): &(u32, u32)| *author;
    /// let theirs = posts.into_iter().map(Ok).semi_join(&johns, author);
    /// assert_eq!(theirs.collect::<Result<Vec<_>>>()?, [(10, 3), (12, 1)]);
    /// let others = posts.into_iter().map(Ok).anti_join(&johns, author);
    /// assert_eq!(others.collect::<Result<Vec<_>>>()?, [(11, 2)]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of the rows.
    fn semi_join<K, F, O>(self, keys: &KeySet<K>, key: F) -> impl Iterator<Item = Result<T>>
    where
        K: Pack,
        F: FnMut(&T) -> O,
        O: Into<Option<K>>,
    {
        matching(self, keys, key, true)
    }

    /// Returns the rows whose key is not in `keys`, including rows without a key.
    ///
    /// # Errors
    /// The errors of the rows.
    fn anti_join<K, F, O>(self, keys: &KeySet<K>, key: F) -> impl Iterator<Item = Result<T>>
    where
        K: Pack,
        F: FnMut(&T) -> O,
        O: Into<Option<K>>,
    {
        matching(self, keys, key, false)
    }
}

impl<T, I: Iterator<Item = Result<T>>> Joins<T> for I {}

/// The rows of a left outer join that have a match.
fn inner<T, U>(
    rows: impl Iterator<Item = Result<(T, Option<U>)>>,
) -> impl Iterator<Item = Result<(T, U)>> {
    rows.filter_map(|row| row.map(|(left, right)| Some((left, right?))).transpose())
}

/// If `wanted`, the rows whose key is in `keys`; otherwise the rows whose key is not.
fn matching<T, K: Pack, O: Into<Option<K>>>(
    mut rows: impl Iterator<Item = Result<T>>,
    keys: &KeySet<K>,
    mut key: impl FnMut(&T) -> O,
    wanted: bool,
) -> impl Iterator<Item = Result<T>> {
    let mut matches =
        move |row: &T| key(row).into().is_some_and(|key| keys.contains(&key)) == wanted;
    until_error(move || rows.find(|row| row.as_ref().map_or(true, &mut matches)).transpose())
}
