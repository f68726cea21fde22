//! Negative controls: each broken kind violates the intended law, and no earlier law.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use keyloom::value::Codec;
use keyloom::{DynWriter, KeyBuf, KeyRange, Order, Reader, Result, Store, Subspace, Writer};
use keyloom_patterns::conformance::{Law, Subject, Suite};
use keyloom_patterns::derived::{Derived, LostRecords, RepairPosition, SortedWrites};
use keyloom_patterns::{Maintained, Progress, RecordChange, RepairOptions, Table};

use crate::kinds::{Composite, Sale, Sales, Sums, TOWNS, memory, sale};
use keyloom_patterns::{Inconsistency, Rule};

/// A flaw of a kind.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Flaw {
    ForgetsOld,
    AnswersInPart,
    ForgetsNew,
    IgnoresLastOfMany,
    TruncatesBatches,
    WritesUnchanged,
    ReadsAll,
    ReadsRecords,
    Stamps,
    MarksDeletions,
    LiesAboutLost,
    SwallowsErrors,
    SkipsRepetitions,
    ReportsIntact,
    ReportsNothing,
    NamesOtherKeys,
    NamesOtherRules,
    EndsAtAShortPage,
    RepairsNothing,
    DeletesTooMuch,
    DeletesNeighbour,
    AddsTwice,
    RepairsAtOnce,
    EndsWhereItFails,
    RemembersChanged,
    WritesOutside,
}

/// A kind with a flaw.
#[derive(Clone)]
struct Flawed<D> {
    good: D,
    flaw: Flaw,
    memory: Arc<Mutex<Memory>>,
}

/// State outside of the store.
#[derive(Default)]
struct Memory {
    last: Vec<(u32, Option<Sale>, Option<Sale>)>,
    changed: BTreeSet<u32>,
}

type Change<'c> = RecordChange<'c, u32, Sale>;

impl<D: Maintained<Key = u32, Value = Sale>> Derived<u32, Sale> for Flawed<D> {
    fn subspace(&self) -> Option<&Subspace> {
        Some(self.good.space())
    }

    fn update(
        &self,
        txn: &mut DynWriter<'_>,
        changes: &[Change<'_>],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        let mut changes = changes.to_vec();
        self.mutate(txn, &mut changes, writes)?;
        self.good.derived().update(txn, &changes, writes)
    }

    fn forget(&self, txn: &mut DynWriter<'_>, lost: &LostRecords<'_, u32>) -> Result<bool> {
        match self.flaw {
            Flaw::LiesAboutLost => Ok(true),
            Flaw::SwallowsErrors => Ok(false),
            _ => self.good.derived().forget(txn, lost),
        }
    }
}

impl<D: Maintained<Key = u32, Value = Sale>> Flawed<D> {
    /// Changes the input of the correct kind, and adds writes.
    fn mutate<'c>(
        &self,
        txn: &mut DynWriter<'_>,
        changes: &mut Vec<Change<'c>>,
        writes: &mut SortedWrites,
    ) -> Result<()> {
        static STAMPS: AtomicU64 = AtomicU64::new(0);
        let space = self.good.space();
        let is_update = |change: &Change<'_>| change.old.is_some() && change.new.is_some();
        let mut memory = self.memory.lock().unwrap();
        match self.flaw {
            Flaw::ForgetsOld => changes.iter_mut().for_each(|change| change.old = None),
            Flaw::ForgetsNew => {
                changes.iter_mut().filter(|one| is_update(one)).for_each(|one| one.new = None);
            }
            // A build passes only new records; other laws pass shorter batches.
            Flaw::TruncatesBatches if changes.iter().all(is_update) => changes.truncate(10),
            Flaw::IgnoresLastOfMany if changes.len() > 1 => drop(changes.pop()),
            Flaw::WritesUnchanged => {
                changes.iter_mut().filter(|one| one.old == one.new).for_each(|one| one.old = None);
            }
            Flaw::ReadsAll => drop(txn.count(space.self_and_children())?),
            Flaw::ReadsRecords => {
                let mut kept = Vec::new();
                for change in changes.iter() {
                    if !is_update(change) || txn.get(change.stored_key)?.is_some() {
                        kept.push(*change);
                    }
                }
                *changes = kept;
            }
            Flaw::Stamps if changes.iter().any(|change| change.old != change.new) => {
                let stamp = STAMPS.fetch_add(1, Relaxed);
                writes.put(&space.pack("stamp"), &stamp.to_le_bytes())?;
            }
            Flaw::MarksDeletions if changes.iter().any(|change| change.new.is_none()) => {
                writes.put(&space.pack("deleted"), b"")?;
            }
            Flaw::SwallowsErrors => {
                for change in changes.iter().filter(|change| change.old != change.new) {
                    let key = space.pack(&("copy", change.key));
                    let _ = match change.new {
                        Some(_) => txn.put(&key, b""),
                        None => txn.delete(&key),
                    };
                }
            }
            Flaw::SkipsRepetitions => {
                let cloned =
                    |change: &Change<'_>| (*change.key, change.old.cloned(), change.new.cloned());
                let these: Vec<_> = changes.iter().map(cloned).collect();
                if memory.last == these {
                    changes.clear();
                }
                memory.last = these;
            }
            Flaw::RemembersChanged => {
                changes.retain(|one| one.old.is_some() || !memory.changed.contains(one.key));
                for change in changes.iter() {
                    match is_update(change) {
                        true => memory.changed.insert(*change.key),
                        false => memory.changed.remove(change.key),
                    };
                }
            }
            Flaw::WritesOutside => {
                let outside = Subspace::new("outside");
                for change in changes.iter().filter(|change| change.old != change.new) {
                    match change.new {
                        Some(_) => writes.put(&outside.pack(change.key), b"")?,
                        None => writes.delete(&outside.pack(change.key))?,
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl<D: Maintained<Key = u32, Value = Sale>> Maintained for Flawed<D> {
    type Key = u32;
    type Value = Sale;

    fn kind(&self) -> &'static str {
        "flawed"
    }

    fn space(&self) -> &Subspace {
        self.good.space()
    }

    fn derived(&self) -> Arc<dyn Derived<u32, Sale>> {
        Arc::new(self.clone())
    }

    fn check<C: Codec<Sale>>(
        &self,
        reader: &impl Reader,
        table: &Table<u32, Sale, C>,
    ) -> Result<Vec<Inconsistency>> {
        let mut found = self.good.check(reader, table)?;
        match self.flaw {
            Flaw::ReportsNothing => found.clear(),
            Flaw::NamesOtherKeys => {
                let other = KeyBuf::from_slice(self.good.space().prefix());
                found.iter_mut().for_each(|fault| fault.key.clone_from(&other));
            }
            Flaw::NamesOtherRules => {
                found.iter_mut().for_each(|fault| fault.rule = Rule::Contested);
            }
            Flaw::EndsAtAShortPage => {
                let own = self.good.space().self_and_children();
                let page = reader.page(own.clone(), Order::Ascending, 1_000)?;
                // There are fewer than 1,000 entries, so no second page is read.
                if let Some(last) = page.last {
                    found.retain(|fault| !own.contains(&fault.key) || fault.key <= last);
                }
            }
            Flaw::ReportsIntact => {
                let first = reader.first(self.good.space().self_and_children())?;
                let missing =
                    |key: &[u8]| Inconsistency::new(KeyBuf::from_slice(key), Rule::Missing);
                found.extend(first.map(|(key, _)| missing(&key)));
            }
            _ => {}
        }
        Ok(found)
    }

    fn repair_with<S: Store, C: Codec<Sale>>(
        &self,
        store: &S,
        table: &Table<u32, Sale, C>,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let own = self.good.space();
        let at_once = RepairOptions { batch: usize::MAX, ..options.clone() };
        match self.flaw {
            Flaw::RepairsNothing => return Ok(finished()),
            Flaw::AddsTwice => return add_what_is_missing(own, store, table, options, progress),
            Flaw::EndsWhereItFails => {
                // Entries that cannot be read are treated as missing.
                let count = store.snapshot()?.count(table.space().self_and_children());
                if count.is_err() {
                    return Ok(finished());
                }
            }
            Flaw::RepairsAtOnce => return self.good.repair_with(store, table, &at_once, progress),
            _ => {}
        }
        let done = self.good.repair_with(store, table, options, progress)?;
        let mut before = own.prefix().to_vec();
        *before.last_mut().unwrap() -= 1;
        store.transact(|txn| match self.flaw {
            Flaw::DeletesTooMuch => {
                let first = txn.first(own.self_and_children())?.map(|(key, _)| key.to_vec());
                first.map_or(Ok(()), |key| txn.delete(&key))
            }
            Flaw::DeletesNeighbour => txn.delete(&before),
            _ => Ok(()),
        })?;
        Ok(done)
    }
}

fn finished() -> Progress {
    Progress { finished: true, ..Progress::default() }
}

/// A repair of totals that computes the missing amounts in one transaction and adds them in the
/// next.
fn add_what_is_missing<S: Store, C: Codec<Sale>>(
    space: &Subspace,
    store: &S,
    table: &Table<u32, Sale, C>,
    options: &RepairOptions,
    mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Progress> {
    let mut computed = options.resume.clone().and_then(|position| position.last);
    if computed.is_none() {
        let missing = store.transact(|txn| {
            remove_foreign(space, txn)?;
            missing(space, txn, table)
        })?;
        let last = Some(keyloom::pack(&(missing[0], missing[1], missing[2])));
        let position =
            RepairPosition { entries: false, last: last.clone(), ..RepairPosition::default() };
        let done = Progress { position, ..Progress::default() };
        if progress(&done).is_break() {
            return Ok(done);
        }
        computed = last;
    }
    let (bern, chur, genf) = keyloom::unpack(&computed.unwrap())?;
    store.transact(|txn| {
        let mut all = TOWNS.into_iter().zip([bern, chur, genf]).filter(|(_, by)| *by != 0);
        all.try_for_each(|(town, by)| txn.add(&space.pack(town), by))
    })?;
    Ok(finished())
}

fn remove_foreign(space: &Subspace, txn: &mut impl Writer) -> Result<()> {
    let known = TOWNS.map(|town| space.pack(town));
    let all = txn.range(space.self_and_children(), Order::Ascending)?;
    let all = all.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.len())));
    for (key, bytes) in all.collect::<Result<Vec<_>>>()? {
        if bytes != 8 || !known.iter().any(|known| known[..] == key[..]) {
            txn.delete(&key)?;
        }
    }
    Ok(())
}

fn missing<C: Codec<Sale>>(
    space: &Subspace,
    reader: &impl Reader,
    table: &Table<u32, Sale, C>,
) -> Result<[i64; 3]> {
    let sales: Sales = table.range(reader, ..)?.collect::<Result<_>>()?;
    let mut missing = [0; 3];
    for ((town, wanted), missing) in TOWNS.into_iter().zip(Sums.model(&sales)).zip(&mut missing) {
        *missing = wanted - reader.counter(&space.pack(town))?;
    }
    Ok(missing)
}

/// A reader whose ranges end silently where they fail.
struct InPart<'r, R>(&'r R);

impl<R: Reader> Reader for InPart<'_, R> {
    type Bytes<'x>
        = R::Bytes<'x>
    where
        Self: 'x;
    type Entries<'x>
        = std::vec::IntoIter<Result<(R::Bytes<'x>, R::Bytes<'x>)>>
    where
        Self: 'x;

    fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes<'_>>> {
        self.0.get(key)
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<Self::Entries<'_>> {
        let entries = self.0.range(range, order)?.take_while(Result::is_ok);
        Ok(entries.collect::<Vec<_>>().into_iter())
    }
}

/// A kind of the suite, with a flaw.
struct Mutant<T>(T, Flaw);

impl<T: Subject<Key = u32, Value = Sale>> Subject for Mutant<T> {
    type Key = u32;
    type Value = Sale;
    type Kind = Flawed<T::Kind>;
    type Answers = T::Answers;

    fn make(&self, space: &Subspace) -> Result<Self::Kind> {
        let Self(good, flaw) = self;
        Ok(Flawed { good: good.make(space)?, flaw: *flaw, memory: Arc::default() })
    }

    fn record(&self, n: u32, version: u32) -> (u32, Sale) {
        sale(n, version)
    }

    fn answers(&self, kind: &Self::Kind, reader: &impl Reader) -> Result<T::Answers> {
        match self.1 {
            Flaw::AnswersInPart => self.0.answers(&kind.good, &InPart(reader)),
            _ => self.0.answers(&kind.good, reader),
        }
    }

    fn model(&self, sales: &Sales) -> T::Answers {
        self.0.model(sales)
    }

    fn is_neutral(&self, value: &[u8]) -> bool {
        self.0.is_neutral(value)
    }
}

fn is_caught<T: Subject<Key = u32, Value = Sale>>(mutant: Mutant<T>, law: Law) {
    let seen = Suite::new().run(memory, &mutant).unwrap();
    let first = seen.first().map(|violation| violation.law);
    assert_eq!(first, Some(law), "{:?} breaks {seen:#?}", mutant.1);
}

macro_rules! caught {
    ($($name:ident: $subject:ident, $flaw:ident, $law:ident;)+) => {
        $(#[test] fn $name() {
            is_caught(Mutant($subject, Flaw::$flaw), Law::$law);
        })+

        #[test]
        fn each_law_catches_a_mutant() {
            let caught: BTreeSet<_> = [$(Law::$law),+].into();
            assert_eq!(caught.len(), Law::ALL.len());
        }
    };
}

caught! {
    an_update_that_forgets_the_old_value: Composite, ForgetsOld, Answers;
    an_update_that_forgets_the_new_value: Sums, ForgetsNew, Answers;
    an_update_that_ignores_one_of_many: Composite, IgnoresLastOfMany, Batches;
    a_query_that_ends_where_it_fails: Composite, AnswersInPart, Budget;
    an_update_that_writes_unchanged_entries: Composite, WritesUnchanged, Unchanged;
    an_update_that_reads_all_entries: Composite, ReadsAll, Growth;
    an_update_that_reads_the_records: Composite, ReadsRecords, Records;
    an_update_that_writes_a_random_value: Composite, Stamps, Deterministic;
    an_update_that_leaves_a_key: Composite, MarksDeletions, Rebuilt;
    a_kind_that_keeps_data_of_lost_records: Composite, LiesAboutLost, Lost;
    an_update_that_swallows_an_error: Composite, SwallowsErrors, Faults;
    an_update_that_skips_repeated_changes: Sums, SkipsRepetitions, Conflicts;
    a_check_that_reports_intact_data: Composite, ReportsIntact, Quiet;
    a_check_that_reports_nothing: Composite, ReportsNothing, Found;
    a_check_that_names_other_keys: Composite, NamesOtherKeys, Found;
    a_check_that_names_other_rules: Composite, NamesOtherRules, Found;
    a_check_that_ends_at_a_short_page: Composite, EndsAtAShortPage, InSteps;
    a_repair_that_does_nothing: Composite, RepairsNothing, Fixed;
    a_repair_that_deletes_too_much: Composite, DeletesTooMuch, Fixed;
    a_repair_that_deletes_a_neighbour: Composite, DeletesNeighbour, Untouched;
    a_repair_that_adds_twice: Sums, AddsTwice, Repairers;
    a_repair_in_one_transaction: Composite, RepairsAtOnce, Bounded;
    a_repair_that_ends_where_it_fails: Composite, EndsWhereItFails, Short;
    an_update_with_state_outside_the_store: Composite, RemembersChanged, Build;
    an_update_that_truncates_long_batches: Composite, TruncatesBatches, Deferred;
    an_update_outside_of_the_subspace: Composite, WritesOutside, Drop;
}
