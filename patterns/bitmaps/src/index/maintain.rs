//! Maintenance of an index when records change.

use std::collections::BTreeMap;
use std::ops::Bound;

use keyloom::key::pack_into;
use keyloom::{DynWriter, KeyBuf, Limits, MAX_KEY_BYTES, Result, Subspace, Writer};
use keyloom_kit::derived::{Derived, RecordChange, SortedWrites};
use keyloom_kit::{RecordKey, get_many};

use super::columns::ColumnChanges;
use super::fields::{Function, Held, null};
use super::{Field, InvertedIndex};
use crate::bitmap::place_of;
use crate::dense_ids::Given;
use crate::error::{InvertedIndexError, value_too_long};
use crate::{BitSliced, ChunkChanges};

/// The maximum length of a chunk number in a key.
const CHUNK_BYTES: usize = 8;

impl<K: RecordKey, V> InvertedIndex<K, V> {
    /// The values of a record's fields, in the order of their declaration.
    pub(super) fn held(&self, key: &K, value: &V) -> Vec<Held> {
        self.fields.iter().map(|field| field.function.held(key, value)).collect()
    }

    /// Refuses values that are too long for a key.
    pub(super) fn check_lengths(&self, held: &[Held]) -> Result<()> {
        for (field, held) in self.fields.iter().zip(held) {
            let Held::Values(values) = held else { continue };
            for value in values {
                let bytes = field.space.prefix().len() + value.len() + CHUNK_BYTES;
                if bytes > MAX_KEY_BYTES {
                    return Err(value_too_long(&self.space, &field.name, value, bytes));
                }
            }
        }
        Ok(())
    }

    /// Refuses a column that exceeds the value limit of the store.
    pub(super) fn check_column(&self, key: &[u8], bytes: usize, limits: Limits) -> Result<()> {
        let limit = limits.max_value_bytes;
        if bytes <= limit {
            return Ok(());
        }
        let of = self.fields.iter().find(|field| field.column.contains(key));
        of.map_or(Ok(()), |field| {
            let (index, field) = (self.space.named(), field.name.to_string());
            Err(InvertedIndexError::ColumnTooLarge { index, field, bytes, limit }.into())
        })
    }

    /// Visits the containers of an id whose record has these values.
    pub(super) fn containers_of(&self, id: u64, held: &[Held], mut visit: impl FnMut(KeyBuf)) {
        visit(self.all.key(place_of(id).0));
        for (field, held) in self.fields.iter().zip(held) {
            field.containers(id, held, &mut visit);
        }
    }

    /// Collects the changes of an id from the values `old` to `new`; `None` stands for no record.
    fn turn<'h>(
        &self,
        id: u64,
        old: Option<&'h [Held]>,
        new: Option<&'h [Held]>,
        bits: &mut ChunkChanges,
        columns: &mut ColumnChanges<'h>,
    ) {
        let (chunk, offset) = place_of(id);
        if old.is_none() != new.is_none() {
            bits.change(self.all.key(chunk), offset, new.is_some());
        }
        for (n, field) in self.fields.iter().enumerate() {
            let [old, new] = [old, new].map(|held| held.and_then(|held| held.get(n)));
            if old != new {
                field.turn(id, old, new, bits);
            }
            let [was, is] = [old, new].map(|held| held.filter(|held| held.is_something()));
            if let Some(held) = is.or(was).filter(|_| was != is) {
                columns.set(&field.column, id, held, is.is_some());
            }
        }
    }
}

impl<K, V> Field<K, V> {
    /// Visits the containers of this field for an id whose record has these values.
    fn containers(&self, id: u64, held: &Held, mut visit: impl FnMut(KeyBuf)) {
        let chunk = place_of(id).0;
        self.parts(held, |part| visit(self.container(part, chunk)));
    }

    /// Visits the parts of container keys that are specific to these values: packed values, or
    /// slices.
    pub(super) fn parts(&self, held: &Held, mut visit: impl FnMut(&[u8])) {
        match held {
            Held::Values(values) => match &values[..] {
                [] => visit(&null()),
                some => some.iter().for_each(|value| visit(value)),
            },
            Held::Integer(None) => {}
            Held::Integer(Some(integer)) => {
                BitSliced::slices_of(*integer).for_each(|slice| visit(&[slice]));
            }
        }
    }

    /// The key of the container of a [part](Field::parts).
    pub(super) fn container(&self, part: &[u8], chunk: u64) -> KeyBuf {
        if let (Function::Integer(_), [slice]) = (&self.function, part) {
            return self.space.pack(&(chunk, *slice));
        }
        let mut key = KeyBuf::from_slice(self.space.prefix());
        key.extend_from_slice(part);
        pack_into(&chunk, &mut key);
        key
    }

    fn turn(&self, id: u64, old: Option<&Held>, new: Option<&Held>, bits: &mut ChunkChanges) {
        if matches!(self.function, Function::Integer(_)) {
            return self.integers.collect(id, integer(old), integer(new), bits);
        }
        let offset = place_of(id).1;
        if let Some(old) = old {
            self.containers(id, old, |key| bits.clear(key, offset));
        }
        // If a bit is cleared and then set, the later change applies.
        if let Some(new) = new {
            self.containers(id, new, |key| bits.set(key, offset));
        }
    }
}

fn integer(held: Option<&Held>) -> Option<i64> {
    match held {
        Some(Held::Integer(integer)) => *integer,
        _ => None,
    }
}

impl<K: RecordKey, V> InvertedIndex<K, V> {
    /// Like [`update`](Derived::update), but returns the [`Given`] of each change, for data that
    /// another index keeps under the same ids. If a change changes no field, its result is
    /// [`Given::Never`], unless `also` returns true for its position in `changes`.
    ///
    /// # Errors
    /// The errors of `update`.
    pub fn follow(
        &self,
        txn: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, K, V>],
        also: impl Fn(usize) -> bool,
        writes: &mut SortedWrites,
    ) -> Result<Vec<Given>> {
        txn.guarded(|txn| self.give_ids(txn, changes, also, writes))
    }

    fn give_ids(
        &self,
        txn: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, K, V>],
        also: impl Fn(usize) -> bool,
        writes: &mut SortedWrites,
    ) -> Result<Vec<Given>> {
        let (mut turns, mut numbers) = (Vec::with_capacity(changes.len()), Vec::new());
        for (n, change) in changes.iter().enumerate() {
            let [old, new] = [change.old, change.new].map(|v| v.map(|v| self.held(change.key, v)));
            if let Some(new) = &new {
                self.check_lengths(new)?;
            }
            if old != new || also(n) {
                turns.push((change.key, old, new));
                numbers.push(n);
            }
        }
        let keys = turns.iter().map(|(key, old, new)| (*key, [old.is_some(), new.is_some()]));
        let (keys, mut bits) = (keys.collect::<Vec<_>>(), ChunkChanges::new());
        let given = self.ids.follow(txn, &keys, &mut bits, writes)?;
        let mut of_each = vec![Given::Never; changes.len()];
        for (n, given) in numbers.into_iter().zip(&given) {
            if let Some(of_this) = of_each.get_mut(n) {
                *of_this = *given;
            }
        }
        let mut columns = ColumnChanges::default();
        for ((_, old, new), given) in turns.iter().zip(given) {
            let mut turn = |id, old| self.turn(id, old, new.as_deref(), &mut bits, &mut columns);
            match given {
                // A record that had no id was not in the index, whatever its old values were.
                Given::New(id) => turn(id, None),
                Given::Kept(id) | Given::Released(id) => turn(id, old.as_deref()),
                Given::Never => {}
            }
        }
        let mut counts = Counts::new(&self.fields);
        let keys: Vec<&KeyBuf> = bits.keys().chain(columns.keys()).collect();
        let mut stored = get_many(txn, &keys)?.into_iter();
        bits.apply_to(stored.by_ref(), writes, |chunk| {
            counts.count(chunk.key, i64::from(chunk.after > 0) - i64::from(chunk.before > 0));
        })?;
        let limits = txn.limits();
        columns.apply(stored, writes, |key, bytes| self.check_column(key, bytes, limits))?;
        counts.changed().try_for_each(|(key, delta)| txn.add(key, delta))?;
        Ok(of_each)
    }
}

impl<K: RecordKey, V> Derived<K, V> for InvertedIndex<K, V> {
    fn subspace(&self) -> Option<&Subspace> {
        Some(self.space())
    }

    fn update(
        &self,
        txn: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, K, V>],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        self.follow(txn, changes, |_| false, writes).map(drop)
    }

    fn validate(&self, changes: &[RecordChange<'_, K, V>]) -> Result<()> {
        changes.iter().try_for_each(|change| match change.new {
            Some(new) => self.check_lengths(&self.held(change.key, new)),
            None => Ok(()),
        })
    }
}

/// How many containers each field gains or loses.
struct Counts<'f>(BTreeMap<&'f [u8], Count<'f>>);

struct Count<'f> {
    /// The subspace of the containers.
    space: &'f Subspace,
    /// The key of the counter of these containers.
    counter: &'f [u8],
    delta: i64,
}

impl<'f> Counts<'f> {
    fn new<K, V>(fields: &'f [Field<K, V>]) -> Self {
        let fields = fields.iter().filter(|field| matches!(field.function, Function::Values(_)));
        Self(
            fields
                .map(|Field { space, counter, .. }| {
                    (space.prefix(), Count { space, counter, delta: 0 })
                })
                .collect(),
        )
    }

    fn count(&mut self, key: &[u8], delta: i64) {
        if delta == 0 {
            return;
        }
        // The field of this key, if there is one, has the closest prefix at or before the key.
        let before = (Bound::Unbounded, Bound::Included(key));
        let field = self.0.range_mut::<[u8], _>(before).next_back();
        if let Some((_, count)) = field.filter(|(_, count)| count.space.contains(key)) {
            count.delta += delta;
        }
    }

    fn changed(&self) -> impl Iterator<Item = (&'f [u8], i64)> {
        let changed = self.0.values().filter(|count| count.delta != 0);
        changed.map(|count| (count.counter, count.delta))
    }
}
