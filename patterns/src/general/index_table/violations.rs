//! Records that are in each other's way in a unique index.

use std::collections::BTreeMap;

use keyloom::value::Codec;
use keyloom::{KeyBuf, Page, Reader, Result, Subspace, Writer};

use super::{BuildPhase, BuildProgress, Declared, IndexCatalog};
use crate::derived::page_behind;
use crate::general::composite_key_index::{NotUnique, pack_one};
use crate::table::{RecordKey, Table, get_many};

impl<K: RecordKey, V> IndexCatalog<K, V> {
    /// Which records cannot be in a unique index that is being built, and which ones hold their values: at
    /// most `limit` of them. Only those that still are in the way of each other, of those that the build has met so far.
    ///
    /// Change or delete one of each two, and call [`build`](IndexCatalog::build) again.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_patterns::general::index_table::{BuildOptions, BuildPhase};
    /// use keyloom_patterns::{Index, IndexCatalog, Table, entry};
    /// use std::ops::ControlFlow;
    /// let space = Subspace::new("app");
    /// let by_email = Index::new(&space.child("by_email"), |_id, email: &String| entry(email)).unique();
    /// let catalog = IndexCatalog::new(&space.child("indexes")).with("by_email", 1, &by_email);
    /// let users = Table::<u32, String>::new(&space.child("users")).with(&catalog);
    /// let store = Memory::new();
    /// store.transact(|txn| users.put_many(txn, [(1, "ada".to_owned()), (2, "ada".to_owned())]))?;
    ///
    /// let build = || catalog.build(&store, &users, "by_email", &BuildOptions::default(), |_| ControlFlow::Continue(()));
    /// assert_eq!(build()?.phase, BuildPhase::Blocked);
    /// let found = catalog.violations(&store.snapshot()?, &users, "by_email", 10)?;
    /// assert_eq!((found[0].record::<u32>()?, found[0].holder::<u32>()?), (2, 1));
    ///
    /// store.transact(|txn| users.put(txn, &2, &"bob".into()))?;
    /// assert!(build()?.is_finished());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`IndexError::Unknown`](super::IndexError::Unknown); what the store says, and records that do not decode.
    pub fn violations<C: Codec<V>>(
        &self,
        reader: &impl Reader,
        table: &Table<K, V, C>,
        name: &str,
        limit: usize,
    ) -> Result<Vec<NotUnique>> {
        const CHUNK: usize = 1_000;
        let declared = self.declared(name)?;
        let room = self.room("violations", name);
        let (mut found, mut last) = (Vec::new(), None);
        while found.len() < limit {
            let page = page_behind(last.as_deref(), reader, &room, CHUNK)?;
            let keys = listed::<K, _>(&room, page.entries)?;
            let values = table.get_many(reader, &keys)?;
            let records = keys.iter().zip(values.iter().map(Option::as_ref));
            found.extend(places(declared, reader, records)?.violations);
            match page.last {
                Some(key) => last = Some(key),
                None => break,
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    /// Looks again at some of the listed records. Tells whether the index is whole.
    pub(super) fn settle<C: Codec<V>>(
        &self,
        declared: &Declared<K, V>,
        txn: &mut impl Writer,
        table: &Table<K, V, C>,
        batch: usize,
        done: &mut BuildProgress,
    ) -> Result<bool> {
        let room = self.room("violations", &declared.name);
        let Page { entries, last } = page_behind(done.position.as_deref(), txn, &room, batch)?;
        let keys = listed::<K, _>(&room, entries)?;
        let values = table.get_many(txn, &keys)?;
        let records = keys.iter().zip(values.iter().map(Option::as_ref));
        if done.position.is_none() {
            done.violations = 0;
        }
        self.settle_records(declared, txn, records, done)?;
        done.position = last;
        if done.position.is_some() {
            return Ok(false);
        }
        let is_whole = txn.first(room.self_and_children())?.is_none();
        if !is_whole {
            done.phase = BuildPhase::Blocked;
        }
        Ok(is_whole)
    }

    /// Gives records their places in a unique index; lists those whose place another one has.
    pub(super) fn settle_records<'r>(
        &self,
        declared: &Declared<K, V>,
        txn: &mut impl Writer,
        records: impl Iterator<Item = (&'r K, Option<&'r V>)> + Clone,
        done: &mut BuildProgress,
    ) -> Result<()>
    where
        K: 'r,
        V: 'r,
    {
        let room = self.room("violations", &declared.name);
        let listed_at = |key: &K| {
            let mut at = KeyBuf::from_slice(room.prefix());
            at.extend_from_slice(&pack_one(key));
            at
        };
        let Places { written, violators, .. } = places(declared, txn, records.clone())?;
        done.written += written.len() as u64;
        written.iter().try_for_each(|(key, value)| txn.put(key, value))?;
        let is_settling = done.phase == BuildPhase::Settling;
        for (key, _) in records {
            if violators.contains_key(&pack_one(key)) {
                done.violations += 1;
                if !is_settling {
                    txn.put(&listed_at(key), b"")?;
                }
            } else if is_settling {
                txn.delete(&listed_at(key))?;
            }
        }
        Ok(())
    }
}

/// What becomes of some records in a unique index.
struct Places {
    written: BTreeMap<KeyBuf, Vec<u8>>,
    /// The packed keys of the records that another one stands in the way of.
    violators: BTreeMap<KeyBuf, ()>,
    violations: Vec<NotUnique>,
}

/// Costs one round trip.
fn places<'r, K: RecordKey, V: 'r>(
    declared: &Declared<K, V>,
    reader: &impl Reader,
    records: impl Iterator<Item = (&'r K, Option<&'r V>)>,
) -> Result<Places> {
    let index = &declared.index;
    let mut wanted = Vec::new();
    for (key, value) in records {
        let (entries, record_key) = (index.entries_of(key, value), pack_one(key));
        index.check_lengths(&entries, &record_key)?;
        let stored = entries.iter().map(|entry| index.stored(entry, &record_key));
        wanted.extend(stored.map(|(key, value)| (key, value, record_key.clone())));
    }
    let keys: Vec<&KeyBuf> = wanted.iter().map(|(key, ..)| key).collect();
    let there = get_many(reader, &keys)?;
    let (mut written, mut violators) = (BTreeMap::<KeyBuf, Vec<u8>>::new(), BTreeMap::new());
    let mut violations = Vec::new();
    for ((key, value, record_key), there) in wanted.iter().zip(there) {
        let now = written.get(key).map(Vec::as_slice).or(there.as_deref());
        // What cannot be read is written again.
        let readable = now.filter(|now| index.is_entry(key, now));
        if let Some(holder) = index.other_holder(key, readable, record_key)? {
            violations.push(index.not_unique(key, record_key, holder));
            violators.insert(record_key.clone(), ());
        } else if now != Some(&value[..]) {
            written.insert(key.clone(), value.to_vec());
        }
    }
    Ok(Places { written, violators, violations })
}

/// The records that are listed.
fn listed<K: RecordKey, B: std::ops::Deref<Target = [u8]>>(
    room: &Subspace,
    entries: Vec<keyloom::Entry<B>>,
) -> Result<Vec<K>> {
    entries.iter().map(|(key, _)| Ok(room.unpack::<(K,)>(key)?.0)).collect()
}
