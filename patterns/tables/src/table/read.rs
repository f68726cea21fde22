//! Reads of records.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use keyloom::value::Codec;
use keyloom::{Entry, Error, KeyBuf, Pack, Reader, Result, Subspace, Writer};
use keyloom_kit::{Continuation, Page, RecordKey, Select, answers, get_many};

use super::Table;
use super::followed::EntryBytes;
#[cfg(doc)]
use crate::UnreadableEntry;

impl<K: RecordKey, V, C: Codec<V>> Table<K, V, C> {
    /// The record of `key`, which may be a borrowed form of `K`: a `&str` for a `String`. Costs one
    /// get.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Table;
    /// let ages = Table::<String, u8>::new(&Subspace::new("ages"));
    /// let store = Memory::new();
    /// store.transact(|txn| ages.put(txn, &"Ada".into(), &36))?;
    /// assert_eq!(ages.get(&store.snapshot()?, "Ada")?, Some(36));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::At`] with an [`Error::Value`] if the stored bytes do not decode as a record; any
    /// error of the store.
    pub fn get<Q>(&self, reader: &impl Reader, key: &Q) -> Result<Option<V>>
    where
        K: Borrow<Q>,
        Q: Pack + ?Sized,
    {
        let packed = self.space.pack(key);
        Self::decode(&packed, reader.get(&packed)?)
    }

    /// The records of many keys, in the order of `keys`. Costs one round trip.
    ///
    /// # Errors
    /// The errors of [`get`](Table::get).
    pub fn get_many<'k, Q>(
        &self,
        reader: &impl Reader,
        keys: impl IntoIterator<Item = &'k Q>,
    ) -> Result<Vec<Option<V>>>
    where
        K: Borrow<Q>,
        Q: Pack + ?Sized + 'k,
    {
        let keys: Vec<KeyBuf> = keys.into_iter().map(|key| self.space.pack(key)).collect();
        Self::read_many(reader, &keys)
    }

    /// The records whose keys `select` selects, in ascending order unless `select` is
    /// [`descending`](crate::descending). A key prefix selects the keys that begin with the prefix,
    /// and `..` selects all; [`Select`] lists the other forms.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::{Table, descending};
    /// let orders = Table::<(u32, u32), String>::new(&Subspace::new("orders"));
    /// let store = Memory::new();
    /// store.transact(|txn| {
    ///     orders.put(txn, &(7, 1), &"tea".into())?;
    ///     orders.put(txn, &(7, 2), &"milk".into())?;
    ///     orders.put(txn, &(8, 1), &"bread".into())
    /// })?;
    /// let snapshot = store.snapshot()?;
    /// let of_customer = orders.range(&snapshot, descending(7))?;
    /// let of_customer = of_customer.collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(of_customer, [((7, 2), "milk".into()), ((7, 1), "tea".into())]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any error of the store. The iterator also reports keys and values that do not decode.
    pub fn range<'r, R: Reader>(
        &self,
        reader: &'r R,
        select: impl Select<K>,
    ) -> Result<Records<R::Entries<'r>, K, V, C>> {
        let entries = reader.range(select.key_range(&self.space), select.order())?;
        Ok(Records { entries, space: self.space.clone(), record: PhantomData, codec: PhantomData })
    }

    /// At most `limit` of the records of [`range`](Table::range), beginning after `after`.
    ///
    /// A page ends before a record that does not decode, so a page may be shorter than `limit` and
    /// still have a `next`. If the first record of a page does not decode, the page is an error
    /// with an [`UnreadableEntry`], which holds the continuation after that record:
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace, Writer};
    /// use keyloom_tables::{Table, UnreadableEntry};
    /// let words = Table::<u32, String>::new(&Subspace::new("words"));
    /// let store = Memory::new();
    /// store.transact(|txn| {
    ///     words.put_many(txn, [(1, "one".into()), (3, "three".into())])?;
    ///     txn.put(&words.space().pack(&2), b"\xFF")
    /// })?;
    /// let snapshot = store.snapshot()?;
    /// let (mut found, mut damaged, mut next) = (Vec::new(), Vec::new(), None);
    /// loop {
    ///     next = match words.page(&snapshot, .., 10, next.as_ref()) {
    ///         Ok(page) => {
    ///             found.extend(page.items);
    ///             page.next
    ///         }
    ///         Err(error) => {
    ///             damaged.push(error.to_string());
    ///             let Some(unreadable) = error.downcast_ref::<UnreadableEntry>() else {
    ///                 return Err(error);
    ///             };
    ///             Some(unreadable.next.clone())
    ///         }
    ///     };
    ///     if next.is_none() {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(found, [(1, "one".into()), (3, "three".into())]);
    /// assert!(damaged[0].contains(r#"("words", 2)"#) && damaged.len() == 1);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Table;
    /// let table = Table::<u32, u32>::new(&Subspace::new("squares"));
    /// let store = Memory::new();
    /// store.transact(|txn| (0..5).try_for_each(|n| table.put(txn, &n, &(n * n))))?;
    /// let snapshot = store.snapshot()?;
    /// let one = table.page(&snapshot, .., 3, None)?;
    /// let two = table.page(&snapshot, .., 3, one.next.as_ref())?;
    /// assert_eq!(two.items, [(3, 9), (4, 16)]);
    /// assert!(two.next.is_none());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a continuation of another query; [`Error::At`] with an
    /// [`UnreadableEntry`] in an [`Error::Other`] if the first record does not decode.
    pub fn page(
        &self,
        reader: &impl Reader,
        select: impl Select<K>,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<(K, V)>> {
        let (query, order) = (select.key_range(&self.space), select.order());
        let rest = Continuation::resume(after, query.clone(), order)?;
        let page = reader.page(rest, order, limit)?;
        let behind = |last: &[u8]| Continuation::behind(last, &query, order);
        let next = page.last.map(|last| behind(&last));
        let entries = page.entries.into_iter().map(|(key, value)| {
            let record = record::<_, K, V, C>(&self.space, (&*key, &*value));
            (key, record.map(Some))
        });
        answers(entries, next, behind)
    }

    /// The records of packed keys, in the order of `keys`. Costs no round trip if `keys` is empty.
    pub(crate) fn read_many(
        reader: &impl Reader,
        keys: &[impl AsRef<[u8]>],
    ) -> Result<Vec<Option<V>>> {
        let mut records = Vec::with_capacity(keys.len());
        for (key, value) in keys.iter().zip(get_many(reader, keys)?) {
            records.push(Self::decode(key.as_ref(), value)?);
        }
        Ok(records)
    }

    /// The records of many keys, in the order of `keys`; a record that does not decode is an error
    /// in its place. Costs a get for each key, in one round trip.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace, Writer};
    /// use keyloom_tables::Table;
    /// let words = Table::<u32, String>::new(&Subspace::new("words"));
    /// let store = Memory::new();
    /// store.transact(|txn| {
    ///     words.put(txn, &1, &"one".into())?;
    ///     txn.put(&words.space().pack(&2), b"\xFF")
    /// })?;
    /// let found = words.find_many(&store.snapshot()?, &[1, 2, 3])?;
    /// assert!(matches!(&found[..], [Ok(Some(one)), Err(_), Ok(None)] if one == "one"));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any error of the store.
    pub fn find_many<'k>(
        &self,
        reader: &impl Reader,
        keys: impl IntoIterator<Item = &'k K>,
    ) -> Result<Vec<Result<Option<V>>>> {
        let keys: Vec<KeyBuf> = keys.into_iter().map(|key| self.space.pack(key)).collect();
        let stored = get_many(reader, &keys)?;
        Ok(keys.iter().zip(stored).map(|(key, bytes)| Self::decode(key, bytes)).collect())
    }

    pub(super) fn decode<B: Deref<Target = [u8]>>(
        key: &[u8],
        bytes: Option<B>,
    ) -> Result<Option<V>> {
        bytes.map(|bytes| C::decode(&bytes)).transpose().map_err(|error| error.at(key))
    }
}

/// Reads a record of a table and records of another table in one round trip. `entries` are the keys
/// of the schema entries of the tables that the transaction will write. They are read in the same
/// round trip, so the writes need not read them again.
///
/// # Errors
/// The errors of [`Table::get`].
pub fn get_with<'k, K, V, C, L, W, D>(
    txn: &mut impl Writer,
    (table, key): (&Table<K, V, C>, &K),
    (other, keys): (&Table<L, W, D>, impl IntoIterator<Item = &'k L>),
    entries: &[Option<&KeyBuf>],
) -> Result<(Option<V>, Vec<Option<W>>)>
where
    K: RecordKey,
    C: Codec<V>,
    L: RecordKey + 'k,
    D: Codec<W>,
{
    let entries = entries.iter().copied().flatten();
    let entries: Vec<_> =
        entries.filter(|entry| txn.state().remembered(entry).is_none()).cloned().collect();
    let mut packed = entries.clone();
    packed.push(table.space.pack(key));
    packed.extend(keys.into_iter().map(|key| other.space.pack(key)));
    let values = txn.get_many(&packed)?;
    let mut values = packed.iter().zip(values);
    let states = values.by_ref().take(entries.len());
    let states: Vec<Option<EntryBytes>> =
        states.map(|(_, entry)| entry.map(|bytes| (&*bytes).into())).collect();
    let first = match values.next() {
        Some((key, value)) => Table::<K, V, C>::decode(key, value)?,
        None => None,
    };
    let others = values.map(|(key, value)| Table::<L, W, D>::decode(key, value));
    let others = others.collect::<Result<_>>()?;
    for (key, entry) in entries.iter().zip(states) {
        txn.state().remember(key, entry);
    }
    Ok((first, others))
}

/// Decodes the key and the record of an entry of a table in `space`. The entry comes from a range
/// or a page of the store.
///
/// # Errors
/// [`Error::At`] if the key or the record does not decode.
#[inline]
pub fn record<B: Deref<Target = [u8]>, K: RecordKey, V, C: Codec<V>>(
    space: &Subspace,
    (key, value): Entry<B>,
) -> Result<(K, V)> {
    let decode = || Ok((space.unpack(&key)?, C::decode(&value)?));
    decode().map_err(|error: Error| error.at(&key))
}

/// The records of a range of a [`Table`].
pub struct Records<I, K, V, C> {
    entries: I,
    space: Subspace,
    record: PhantomData<fn() -> (K, V)>,
    codec: PhantomData<fn() -> C>,
}

impl<I, K, V, C> fmt::Debug for Records<I, K, V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").field("space", &self.space).finish_non_exhaustive()
    }
}

impl<I, B, K: RecordKey, V, C: Codec<V>> Iterator for Records<I, K, V, C>
where
    I: Iterator<Item = Result<Entry<B>>>,
    B: Deref<Target = [u8]>,
{
    type Item = Result<(K, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.entries.next()?.and_then(|entry| record::<_, K, V, C>(&self.space, entry)))
    }
}
