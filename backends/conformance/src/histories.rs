//! Random histories, compared with an ordered map.

use std::ops::Bound;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use super::compare::{
    Model, agree, blob, expected, first_page, found, get, lies_between, owned, pages, range_many,
    root, same, same_list, walk,
};
use super::{Blob, Finding, Outcome};
use keyloom::{Error, KeyRange, MAX_KEY_BYTES, Order, Reader, Result, Store, Transaction, Writer};

/// A range of an [`Operation`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// The keys between two bounds.
    Between(Bound<Blob>, Bound<Blob>),
    /// The keys that begin with these bytes.
    Prefix(Blob),
}

impl Bounds {
    fn range(&self) -> KeyRange<'_> {
        match self {
            Self::Between(start, end) => KeyRange::new(slice(start), slice(end)),
            Self::Prefix(prefix) => KeyRange::prefix(prefix),
        }
    }

    /// The definition of the range, independent of [`KeyRange`].
    fn contains(&self, key: &[u8]) -> bool {
        match self {
            Self::Between(start, end) => lies_between(key, slice(start), slice(end)),
            Self::Prefix(prefix) => key.starts_with(prefix),
        }
    }
}

fn slice(bound: &Bound<Blob>) -> Bound<&[u8]> {
    bound.as_ref().map(|bytes| &bytes[..])
}

/// The reader of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// A new snapshot for this read.
    Newest,
    /// One of the open snapshots. If none is open, a new snapshot.
    Kept(usize),
    /// The open transaction. If none is open, a new snapshot.
    Transaction,
}

/// One step of a history. Writes go to the open transaction. If no transaction is open, a write
/// begins one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// [`Store::begin`].
    Begin,
    /// [`Transaction::commit`].
    Commit,
    /// Drops the transaction.
    Rollback,
    /// [`Writer::put`].
    Put(Blob, Blob),
    /// [`Writer::delete`].
    Delete(Blob),
    /// [`Writer::delete_range`].
    DeleteRange(Bounds),
    /// [`Writer::add`].
    Add(Blob, i64),
    /// [`Writer::min`].
    Min(Blob, u64),
    /// [`Writer::max`].
    Max(Blob, u64),
    /// [`Writer::append_if_fits`].
    Append(Blob, Blob),
    /// [`Writer::compare_and_clear`].
    Clear(Blob, Blob),
    /// Takes a snapshot and keeps it open across later commits.
    Keep,
    /// Drops an open snapshot.
    Release(usize),
    /// [`Reader::get`].
    Get(View, Blob),
    /// [`Reader::get_many`].
    GetMany(View, Vec<Blob>),
    /// [`Reader::counter`].
    Counter(View, Blob),
    /// [`Reader::range`], to the end.
    Range(View, Bounds, Order),
    /// [`Reader::count`], [`Reader::first`] and [`Reader::last`].
    Ends(View, Bounds),
    /// [`Reader::page`], up to the last page.
    Pages(View, Bounds, Order, usize),
    /// [`Reader::range_many`].
    RangeMany(View, Vec<Bounds>, usize),
}

/// A small set of keys, so that operations interact. The keys consist of bytes that often cause
/// mistakes; some have the maximum length or exceed it.
fn keys() -> impl Strategy<Value = Blob> {
    let byte = || select(&[0x00, 0x01, b'a', 0xFE, 0xFF][..]);
    let long = (vec(byte(), 0..=1), byte(), select(&[510, 511, 511, 512][..]), vec(byte(), 0..=1));
    prop_oneof![
        20 => vec(byte(), 1..=3),
        3 => long.prop_map(|(mut key, byte, length, end)| {
            key.resize(length - end.len(), byte);
            key.extend(end);
            key
        }),
        1 => Just(Vec::new()),
    ]
    .prop_map(Blob)
}

fn values() -> impl Strategy<Value = Blob> {
    prop_oneof![
        4 => vec(any::<u8>(), 0..=3),
        3 => any::<i64>().prop_map(|count| count.to_le_bytes().to_vec()),
        1 => (any::<u8>(), 1_000..6_000_usize).prop_map(|(byte, length)| vec![byte; length]),
    ]
    .prop_map(Blob)
}

fn bounds() -> impl Strategy<Value = Bounds> {
    let bound = || {
        prop_oneof![
            3 => keys().prop_map(Bound::Included),
            3 => keys().prop_map(Bound::Excluded),
            1 => Just(Bound::Unbounded),
        ]
    };
    // Bounds may be longer than a key. In most pairs, the start is before the end.
    let between = (bound(), bound(), 0..10_u8).prop_map(|(start, end, as_they_are)| {
        let is_inverted = match (&start, &end) {
            (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) => {
                a > b
            }
            _ => false,
        };
        if is_inverted && as_they_are > 0 {
            Bounds::Between(end, start)
        } else {
            Bounds::Between(start, end)
        }
    });
    prop_oneof![3 => between, 1 => keys().prop_map(Bounds::Prefix)]
}

fn views() -> impl Strategy<Value = View> {
    prop_oneof![
        1 => Just(View::Newest),
        2 => (0..4_usize).prop_map(View::Kept),
        3 => Just(View::Transaction),
    ]
}

fn orders() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Ascending), Just(Order::Descending)]
}

/// Histories of `length` operations.
///
/// ```
/// use keyloom::Memory;
/// use keyloom_conformance::{operations, replay};
/// use proptest::prelude::*;
/// proptest!(|(history in operations(40))| {
///     replay(&Memory::new(), &history)?;
/// });
/// ```
pub fn operations(length: usize) -> impl Strategy<Value = Vec<Operation>> {
    let delta = || prop_oneof![-3..=3_i64, any::<i64>()];
    let operation = prop_oneof![
        2 => Just(Operation::Begin),
        3 => Just(Operation::Commit),
        1 => Just(Operation::Rollback),
        12 => (keys(), values()).prop_map(|(key, value)| Operation::Put(key, value)),
        4 => keys().prop_map(Operation::Delete),
        2 => bounds().prop_map(Operation::DeleteRange),
        2 => (keys(), delta()).prop_map(|(key, delta)| Operation::Add(key, delta)),
        1 => (keys(), any::<u64>()).prop_map(|(key, bound)| Operation::Min(key, bound)),
        1 => (keys(), any::<u64>()).prop_map(|(key, bound)| Operation::Max(key, bound)),
        1 => (keys(), values()).prop_map(|(key, tail)| Operation::Append(key, tail)),
        1 => (keys(), values()).prop_map(|(key, value)| Operation::Clear(key, value)),
        2 => Just(Operation::Keep),
        1 => (0..4_usize).prop_map(Operation::Release),
        3 => (views(), keys()).prop_map(|(view, key)| Operation::Get(view, key)),
        1 => (views(), vec(keys(), 0..6)).prop_map(|(view, keys)| Operation::GetMany(view, keys)),
        1 => (views(), keys()).prop_map(|(view, key)| Operation::Counter(view, key)),
        6 => (views(), bounds(), orders())
            .prop_map(|(view, bounds, order)| Operation::Range(view, bounds, order)),
        2 => (views(), bounds()).prop_map(|(view, bounds)| Operation::Ends(view, bounds)),
        2 => (views(), bounds(), orders(), 1..5_usize)
            .prop_map(|(view, bounds, order, limit)| Operation::Pages(view, bounds, order, limit)),
        2 => (views(), vec(bounds(), 0..4), 0..5_usize)
            .prop_map(|(view, ranges, limit)| Operation::RangeMany(view, ranges, limit)),
    ];
    vec(operation, length)
}

pub(super) fn random_histories_agree_with_an_ordered_map<S: Store>(
    store: &S,
    all_operations: usize,
    seed: u64,
) -> Outcome {
    const LENGTH: usize = 80;
    let config = Config {
        cases: u32::try_from(all_operations.div_ceil(LENGTH)).unwrap_or(u32::MAX),
        // A slow store, or a store that fails by waiting, must still be reported within a minute.
        max_shrink_iters: 1_000,
        max_shrink_time: 20_000,
        // No file is written, since a violation contains the seed.
        failure_persistence: None,
        ..Config::default()
    };
    let mut seed_bytes = [0; 32];
    for (byte, seed) in seed_bytes.iter_mut().zip(seed.to_le_bytes()) {
        *byte = seed;
    }
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed_bytes);
    let outcome = TestRunner::new_with_rng(config, rng).run(&operations(LENGTH), |history| {
        let fail = |finding: Finding| TestCaseError::fail(finding.to_string());
        // The same store is used for all histories, and emptied before each one.
        store.transact(|txn| txn.delete_range(KeyRange::all())).map_err(|e| fail(e.into()))?;
        replay(store, &history).map_err(fail)
    });
    match outcome {
        Ok(()) => Ok(()),
        Err(TestError::Fail(reason, history)) => {
            found(format!("{reason}; after {history:?} (seed {seed})"))
        }
        Err(TestError::Abort(reason)) => found(format!("{reason} (seed {seed})")),
    }
}

/// Runs a history on `store`, which must be empty, and compares each result with the result of an
/// ordered map. A commit that the store refuses as a conflict counts as a rollback.
///
/// See [`operations`] for an example.
///
/// # Errors
/// The first result that differs.
pub fn replay<S: Store>(store: &S, history: &[Operation]) -> Outcome {
    let mut replay = Replay { store, committed: Model::new(), open: None, kept: Vec::new() };
    for (n, operation) in history.iter().enumerate() {
        replay.step(operation).map_err(|Finding(seen)| Finding(format!("step {n}: {seen}")))?;
    }
    replay.end()
}

struct Replay<'s, S: Store> {
    store: &'s S,
    committed: Model,
    open: Option<(S::Transaction<'s>, Model)>,
    kept: Vec<(S::Snapshot<'s>, Model)>,
}

/// Calls `$read` with the reader and the model of a view.
macro_rules! with_view {
    ($self:ident, $view:expr, |$reader:ident, $model:ident| $read:expr) => {{
        let chosen = match $view {
            View::Kept(n) if !$self.kept.is_empty() => $self.kept.get(n % $self.kept.len()),
            _ => None,
        };
        match (chosen, &$self.open, $view) {
            (Some(($reader, $model)), ..) => $read,
            (None, Some(($reader, $model)), View::Transaction) => $read,
            _ => {
                let ($reader, $model) = (&$self.store.snapshot()?, &$self.committed);
                $read
            }
        }
    }};
}

impl<'s, S: Store> Replay<'s, S> {
    fn step(&mut self, operation: &Operation) -> Outcome {
        match operation {
            Operation::Begin => self.writer().map(drop),
            Operation::Commit => self.commit(),
            Operation::Rollback => {
                self.open = None;
                Ok(())
            }
            Operation::Keep => self.keep(),
            Operation::Release(n) => {
                if *n < self.kept.len() {
                    let (snapshot, model) = self.kept.swap_remove(*n);
                    agree("a snapshot that was kept", &snapshot, &model)?;
                }
                Ok(())
            }
            Operation::Put(..)
            | Operation::Delete(_)
            | Operation::DeleteRange(_)
            | Operation::Add(..)
            | Operation::Min(..)
            | Operation::Max(..)
            | Operation::Append(..)
            | Operation::Clear(..) => {
                let (txn, model) = self.writer()?;
                write(txn, model, operation)
            }
            Operation::Get(view, _)
            | Operation::GetMany(view, _)
            | Operation::Counter(view, _)
            | Operation::Range(view, ..)
            | Operation::Ends(view, _)
            | Operation::Pages(view, ..)
            | Operation::RangeMany(view, ..) => {
                with_view!(self, *view, |reader, model| read(reader, model, operation))
            }
        }
    }

    /// The open transaction and its expected contents; begins a transaction if none is open.
    fn writer(&mut self) -> Outcome<&mut (S::Transaction<'s>, Model)> {
        if self.open.is_none() {
            let txn = self.store.begin()?;
            agree("a new transaction", &txn, &self.committed)?;
            self.open = Some((txn, self.committed.clone()));
        }
        self.open.as_mut().ok_or_else(|| Finding("no transaction".into()))
    }

    fn commit(&mut self) -> Outcome {
        let Some((txn, model)) = self.open.take() else { return Ok(()) };
        match txn.commit() {
            Ok(()) => self.committed = model,
            Err(error) if error.is_retryable() => {}
            Err(error) => return Err(error.into()),
        }
        agree("a snapshot after the commit", &self.store.snapshot()?, &self.committed)
    }

    fn keep(&mut self) -> Outcome {
        const MOST_KEPT: usize = 4;
        if self.kept.len() == MOST_KEPT {
            self.kept.remove(0);
        }
        self.kept.push((self.store.snapshot()?, self.committed.clone()));
        Ok(())
    }

    fn end(mut self) -> Outcome {
        if let Some((txn, model)) = self.open.take() {
            agree("the transaction at the end", &txn, &model)?;
        }
        agree("the store at the end", &self.store.snapshot()?, &self.committed)?;
        self.kept
            .iter()
            .try_for_each(|(kept, model)| agree("a snapshot kept to the end", kept, model))
    }
}

fn write<W: Writer>(txn: &mut W, model: &mut Model, operation: &Operation) -> Outcome {
    match operation {
        Operation::Put(key, value) => {
            let is_key = accepted(txn.put(key, value), key)?;
            is_key.then(|| model.insert(key.clone(), value.clone()));
        }
        Operation::Delete(key) => {
            let is_key = accepted(txn.delete(key), key)?;
            is_key.then(|| model.remove(key));
        }
        Operation::DeleteRange(bounds) => {
            txn.delete_range(bounds.range())?;
            model.retain(|key, _| !bounds.contains(key));
        }
        Operation::Add(key, delta) => {
            count(txn.add(key, *delta), model, key, |old| old.unwrap_or(0).wrapping_add(*delta))?;
        }
        Operation::Min(key, bound) => {
            let min = |old: i64| old.cast_unsigned().min(*bound).cast_signed();
            count(txn.min(key, *bound), model, key, |old| old.map_or(bound.cast_signed(), min))?;
        }
        Operation::Max(key, bound) => {
            let max = |old: i64| old.cast_unsigned().max(*bound).cast_signed();
            count(txn.max(key, *bound), model, key, |old| old.map_or(bound.cast_signed(), max))?;
        }
        Operation::Append(key, tail) => {
            // No value of a history is close to the limit.
            let is_key = accepted(txn.append_if_fits(key, tail), key)?;
            is_key.then(|| model.entry(key.clone()).or_default().0.extend_from_slice(tail));
        }
        Operation::Clear(key, value) => {
            let is_key = accepted(txn.compare_and_clear(key, value), key)?;
            let is_it = is_key && model.get(key) == Some(value);
            is_it.then(|| model.remove(key));
        }
        _ => {}
    }
    Ok(())
}

/// Whether an operation on `key` succeeded. It must succeed if the key is valid, and must fail
/// otherwise.
fn accepted<T>(answer: Result<T>, key: &[u8]) -> Outcome<bool> {
    let is_key = (1..=MAX_KEY_BYTES).contains(&key.len());
    match answer {
        Ok(_) if is_key => Ok(true),
        Err(error) if !is_key => match root(&error) {
            Error::EmptyKey | Error::KeyTooLong { .. } => Ok(false),
            _ => Err(error.into()),
        },
        Ok(_) => found(format!("a key of {} bytes was taken", key.len())),
        Err(error) => Err(error.into()),
    }
}

/// The counter in the model: `Err` if the value is not a counter.
fn counter_of(model: &Model, key: &[u8]) -> Result<Option<i64>, usize> {
    let Some(value) = model.get(key) else { return Ok(None) };
    let bytes = <[u8; 8]>::try_from(&value[..]).map_err(|_| value.len())?;
    Ok(Some(i64::from_le_bytes(bytes)))
}

fn count(
    answer: Result<()>,
    model: &mut Model,
    key: &Blob,
    change: impl Fn(Option<i64>) -> i64,
) -> Outcome {
    match counter_of(model, key) {
        Err(_) if answer.is_ok() => {
            // A store without validation truncates or zero-extends the value to eight bytes.
            let mut taken = [0; 8];
            let value = model.get(key).map(|value| &value[..]).unwrap_or_default();
            taken.iter_mut().zip(value).for_each(|(byte, old)| *byte = *old);
            let counted = change(Some(i64::from_le_bytes(taken)));
            model.insert(key.clone(), blob(counted.to_le_bytes()));
            Ok(())
        }
        Err(bytes) => no_counter(answer, bytes),
        Ok(old) => {
            if accepted(answer, key)? {
                model.insert(key.clone(), blob(change(old).to_le_bytes()));
            }
            Ok(())
        }
    }
}

fn no_counter<T>(answer: Result<T>, length: usize) -> Outcome {
    match answer {
        Err(error) if matches!(root(&error), Error::NotACounter { .. }) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => found(format!("a value of {length} bytes was taken as a counter")),
    }
}

fn read<R: Reader>(reader: &R, model: &Model, operation: &Operation) -> Outcome {
    let what = format!("{operation:?}");
    match operation {
        Operation::Get(_, key) => {
            let answer = get(reader, key);
            let seen = answer.as_ref().ok().cloned().flatten();
            if accepted(answer, key)? {
                same(&what, &seen.as_ref(), &model.get(key))?;
            }
        }
        Operation::GetMany(_, keys) => {
            let answer = reader.get_many(keys);
            // One invalid key makes the whole call fail.
            let refused = keys.iter().find(|key| !(1..=MAX_KEY_BYTES).contains(&key.len()));
            if let Some(key) = refused {
                accepted(answer, key)?;
            } else {
                let seen: Vec<_> =
                    answer?.into_iter().map(|value| value.map(|value| blob(&*value))).collect();
                let right: Vec<_> = keys.iter().map(|key| model.get(key).cloned()).collect();
                same(&what, &seen, &right)?;
            }
        }
        Operation::Counter(_, key) => match (counter_of(model, key), reader.counter(key)) {
            (Err(bytes), answer) => no_counter(answer, bytes)?,
            (Ok(_), Err(error)) => drop(accepted::<()>(Err(error), key)?),
            (Ok(right), Ok(seen)) => same(&what, &seen, &right.unwrap_or(0))?,
        },
        Operation::Range(_, bounds, order) => {
            let right = expected(model, |key| bounds.contains(key), *order);
            same_list(&what, &walk(reader, bounds.range(), *order)?, &right)?;
        }
        Operation::Ends(_, bounds) => {
            let right = expected(model, |key| bounds.contains(key), Order::Ascending);
            let (first, last) = (reader.first(bounds.range())?, reader.last(bounds.range())?);
            let ends = (first.map(owned), last.map(owned));
            same(&what, &ends, &(right.first().cloned(), right.last().cloned()))?;
            same(&what, &reader.count(bounds.range())?, &(right.len() as u64))?;
        }
        Operation::Pages(_, bounds, order, limit) => {
            let right = expected(model, |key| bounds.contains(key), *order);
            same_list(&what, &pages(reader, &bounds.range(), *order, *limit)?, &right)?;
        }
        Operation::RangeMany(_, bounds, limit) => {
            let right =
                bounds.iter().map(|part| first_page(model, |key| part.contains(key), *limit));
            let ranges: Vec<KeyRange<'_>> = bounds.iter().map(Bounds::range).collect();
            same(&what, &range_many(reader, &ranges, *limit)?, &right.collect())?;
        }
        _ => {}
    }
    Ok(())
}
