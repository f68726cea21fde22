//! The records and the derived data that the laws are checked with.

use std::cell::RefCell;
use std::collections::BTreeMap;

use keyloom::value::{Codec, Postcard};
use keyloom::{Error, KeyBuf, KeyRange, Order, Reader, Result, Store, Subspace, Writer, pack};

use super::{Fidelity, Finding, Outcome, Subject, ensure};
use crate::schema::{Attached, Schema};
use crate::table::Table;

/// Keys and values of a store.
pub(super) type Dump = BTreeMap<Vec<u8>, Vec<u8>>;

/// The number of records that most histories change.
pub(super) const RECORDS: u32 = 12;

/// The number of versions of one record in histories.
const VERSIONS: u32 = 40;

type Records<T> = BTreeMap<<T as Subject>::Key, <T as Subject>::Value>;

/// A table, its derived data, and keys of other data. In key order, the other data comes directly
/// before the derived data, and the table directly after it.
pub(super) struct Field<'t, T: Subject> {
    pub(super) subject: &'t T,
    pub(super) records: Table<T::Key, T::Value>,
    pub(super) derived: Attached<T::Kind>,
    /// The subspace that the schema has assigned to the derived data.
    pub(super) space: Subspace,
    /// The records of the table.
    pub(super) model: Records<T>,
}

impl<'t, T: Subject> Field<'t, T> {
    /// Clears the store and declares a table with derived data.
    pub(super) fn new(subject: &'t T, store: &impl Store) -> Result<Self> {
        Self::declare(subject, store, false)
    }

    /// Like [`new`](Field::new), with deferred derived data.
    pub(super) fn deferred(subject: &'t T, store: &impl Store) -> Result<Self> {
        Self::declare(subject, store, true)
    }

    fn declare(subject: &'t T, store: &impl Store, is_deferred: bool) -> Result<Self> {
        store.transact(|txn| txn.delete_range(KeyRange::all()))?;
        let schema = Schema::open(store, "conformance")?;
        let records = schema.table("records")?;
        let (derived, space) = derive(&schema, subject, &records, "derived", is_deferred)?;
        // For deferred data, the keys directly before the data belong to its queue.
        let neighbours = neighbours(&space);
        let neighbours = neighbours.iter().filter(|_| !is_deferred);
        store.transact(|txn| neighbours.clone().try_for_each(|key| txn.put(key, b"neighbour")))?;
        Ok(Self { subject, records, derived, space, model: BTreeMap::new() })
    }

    /// A field with the records 0 to `count - 1` in version 0.
    pub(super) fn filled(subject: &'t T, store: &impl Store, count: u32) -> Result<Self> {
        let mut field = Self::new(subject, store)?;
        let changes: Vec<_> = (0..count).map(|n| (n, Some(0))).collect();
        // Small batches, since stores limit transactions.
        for changes in changes.chunks(32) {
            field.commit(store, changes)?;
        }
        Ok(field)
    }

    /// A field after a random history.
    pub(super) fn with_history(subject: &'t T, store: &impl Store, seed: u64) -> Result<Self> {
        let (mut field, mut random) = (Self::new(subject, store)?, Random(seed));
        for _ in 0..30 {
            field.commit(store, &random.changes::<T>(4))?;
        }
        Ok(field)
    }

    /// Makes changes in one transaction, as one batch of puts and one of deletes.
    pub(super) fn commit(&mut self, store: &impl Store, changes: &[Change]) -> Result<()> {
        store.transact(|txn| self.make(txn, changes))?;
        self.note(changes);
        Ok(())
    }

    /// Writes changes. Several changes are written as a batch of puts and a batch of deletes.
    pub(super) fn make(&self, txn: &mut impl Writer, changes: &[Change]) -> Result<()> {
        let versions = changes.iter().filter_map(|(n, version)| Some((*n, (*version)?)));
        let puts: Vec<_> = versions.map(|(n, version)| self.subject.record(n, version)).collect();
        let deleted = changes.iter().filter(|(_, version)| version.is_none());
        let deleted: Vec<_> = deleted.map(|(n, _)| self.subject.record(*n, 0).0).collect();
        match (&*puts, &*deleted) {
            ([(key, value)], []) => self.records.put(txn, key, value),
            ([], [key]) => self.records.delete(txn, key).map(drop),
            (puts, deleted) => {
                self.records.put_many(txn, puts)?;
                self.records.delete_many(txn, deleted).map(drop)
            }
        }
    }

    /// Applies changes to the model.
    pub(super) fn note(&mut self, changes: &[Change]) {
        for (n, version) in changes {
            let (key, value) = self.subject.record(*n, version.unwrap_or(0));
            match version {
                Some(_) => self.model.insert(key, value),
                None => self.model.remove(&key),
            };
        }
    }

    /// The entry of a record in the table.
    pub(super) fn record(&self, n: u32, version: u32) -> Result<(KeyBuf, Vec<u8>)> {
        let (key, value) = self.subject.record(n, version);
        let mut bytes = Vec::new();
        Postcard::encode(&value, &mut bytes)?;
        Ok((self.records.space().pack(&key), bytes))
    }

    /// The entries of the derived data, except entries with a [neutral](Subject::is_neutral) value.
    pub(super) fn own(&self, reader: &impl Reader) -> Result<Dump> {
        let mut own = dump(reader, self.space.self_and_children())?;
        own.retain(|_, value| !self.subject.is_neutral(value));
        Ok(own)
    }

    /// All keys except those of the derived data and the fencing tokens of repairs.
    pub(super) fn others(&self, reader: &impl Reader) -> Result<Dump> {
        let tokens = Subspace::new(&("keyloom", "repair"));
        let mut all = dump(reader, KeyRange::all())?;
        all.retain(|key, _| !self.space.contains(key) && !tokens.contains(key));
        Ok(all)
    }

    /// Compares the answers of the kind with those of the model.
    pub(super) fn answers(&self, reader: &impl Reader, when: &str) -> Outcome {
        let answers = self.subject.answers(self.derived.at(reader)?, reader)?;
        let wanted = self.subject.model(&self.model);
        ensure!(answers == wanted, "{when}: answers {answers:?}, model {wanted:?}");
        Ok(())
    }

    /// Requires that a check reports nothing.
    pub(super) fn quiet(&self, reader: &impl Reader, when: &str) -> Outcome {
        let found = self.derived.check(reader)?;
        let Some(first) = found.first() else { return Ok(()) };
        Err(Finding(format!("{when}: the check reports {}: {first}", found.len())))
    }

    /// Requires that the data is correct and that a check reports nothing.
    pub(super) fn intact(&self, store: &impl Store, when: &str) -> Outcome {
        self.quiet(&store.snapshot()?, when)?;
        self.right(store, when)
    }

    /// Requires that the answers are correct. If the suite compares bytes, also requires that the
    /// bytes equal those of data built in another subspace.
    pub(super) fn right(&self, store: &impl Store, when: &str) -> Outcome {
        let snapshot = store.snapshot()?;
        self.answers(&snapshot, when)?;
        if T::FIDELITY != Fidelity::Bytes {
            return Ok(());
        }
        let maintained = self.own(&snapshot)?;
        drop(snapshot);
        let schema = Schema::open(store, "conformance")?;
        let records = schema.table("records")?;
        let (rebuilt, space) = derive(&schema, self.subject, &records, "rebuilt", false)?;
        rebuilt.build(store)?;
        let mut built = dump(&store.snapshot()?, space.self_and_children())?;
        built.retain(|_, value| !self.subject.is_neutral(value));
        rebuilt.drop_data(store)?;
        let differs = difference(&below(&self.space, maintained), &below(&space, built));
        ensure!(differs.is_empty(), "{when}: maintained and rebuilt data differ: {differs}");
        Ok(())
    }
}

/// The number of a record and its next version; `None` deletes the record.
pub(super) type Change = (u32, Option<u32>);

fn derive<T: Subject>(
    schema: &Schema<'_, impl Store>,
    subject: &T,
    records: &Table<T::Key, T::Value>,
    name: &str,
    is_deferred: bool,
) -> Result<(Attached<T::Kind>, Subspace)> {
    let assigned = RefCell::new(None);
    let make = |space: &Subspace| {
        assigned.replace(Some(space.clone()));
        subject.make(space)
    };
    let derived = match is_deferred {
        true => schema.derive_deferred(records, name, 1, make)?,
        false => schema.derive(records, name, 1, make)?,
    };
    let space = assigned.take().ok_or_else(|| Error::other("the schema assigned no subspace"))?;
    Ok((derived, space))
}

/// Keys of other data directly before a subspace.
pub(super) fn neighbours(space: &Subspace) -> [Vec<u8>; 2] {
    let mut before = space.prefix().to_vec();
    if let Some(last) = before.last_mut() {
        *last = last.wrapping_sub(1);
    }
    let nearer = [&*before, &pack(&("neighbour", 1))].concat();
    [before, nearer]
}

pub(super) fn dump(reader: &impl Reader, range: KeyRange<'_>) -> Result<Dump> {
    let entries = reader.range(range, Order::Ascending)?;
    entries.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec()))).collect()
}

pub(super) fn dump_all(store: &impl Store) -> Result<Dump> {
    dump(&store.snapshot()?, KeyRange::all())
}

/// Replaces the contents of the store with `all`.
pub(super) fn restore(store: &impl Store, all: &Dump) -> Result<()> {
    store.transact(|txn| {
        txn.delete_range(KeyRange::all())?;
        all.iter().try_for_each(|(key, value)| txn.put(key, value))
    })
}

/// The same entries, with keys relative to a subspace.
fn below(space: &Subspace, all: Dump) -> Dump {
    let rest = |key: Vec<u8>| key.strip_prefix(space.prefix()).unwrap_or(&key).to_vec();
    all.into_iter().map(|(key, value)| (rest(key), value)).collect()
}

/// The first differences between two dumps, as text; empty if they are equal.
pub(super) fn difference(left: &Dump, right: &Dump) -> String {
    let of_left = left.iter().filter(|(key, value)| right.get(*key) != Some(value));
    let of_right = right.keys().filter(|key| !left.contains_key(*key));
    let lines = of_left.map(|(key, value)| match right.get(key) {
        Some(other) => format!("{key:?} has {value:?}, not {other:?}; "),
        None => format!("{key:?} is in the first only; "),
    });
    let lines = lines.chain(of_right.map(|key| format!("{key:?} is in the second only; ")));
    lines.take(3).collect()
}

/// A small generator of pseudo-random numbers (SplitMix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % u64::from(end.max(1))) as u32
    }

    /// One to `most` changes of distinct records.
    pub(super) fn changes<T: Subject>(&mut self, most: u32) -> Vec<Change> {
        let mut changes = BTreeMap::new();
        for _ in 0..=self.below(most) {
            let n = self.below(RECORDS);
            let version = (self.below(4) > 0).then(|| self.below(VERSIONS));
            // In a growing kind, the data of a record cannot change.
            let version = if T::FIDELITY == Fidelity::Growing { Some(0) } else { version };
            changes.insert(n, version);
        }
        changes.into_iter().collect()
    }
}
