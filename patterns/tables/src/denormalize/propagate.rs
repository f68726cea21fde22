//! Changes the copies of marked sources in bounded transactions.

use std::ops::ControlFlow;

use keyloom::key::display_named;
use keyloom::value::Codec;
use keyloom::{Error, KeyBuf, KeyRange, Order, Result, Store, Writer};
use keyloom_kit::{BatchSize, Continuation, Page, Progress, RecordKey, RepairOptions, Select};

use super::DenormalizedFields;
use crate::index::Found;

/// The format version of the marks that this code writes.
const FORMAT: u8 = 1;

/// The value of a mark whose propagation has not begun.
pub(super) fn at_the_beginning() -> Vec<u8> {
    vec![FORMAT]
}

fn behind(position: &Continuation) -> Vec<u8> {
    [&[FORMAT], position.as_bytes()].concat()
}

/// The mark of a source, with the position of its propagation.
struct Mark {
    key: KeyBuf,
    position: Option<Continuation>,
}

impl<SK, S, K, V, CS, C> DenormalizedFields<SK, S, K, V, CS, C>
where
    SK: RecordKey,
    S: 'static,
    K: RecordKey,
    V: Clone + PartialEq + 'static,
    CS: Codec<S>,
    C: Codec<V>,
{
    /// Refreshes all copies of all marked sources, in bounded transactions, while other
    /// transactions read and write.
    ///
    /// Visits the marked sources in key order and finishes each source before the next. If a source
    /// changes meanwhile, its mark is reset, and the source waits for the next round. So a source
    /// that changes often does not delay the others.
    ///
    /// In the [`Progress`], `records` counts the targets visited, `written` counts the targets
    /// whose copy was stale, and `removed` counts the removed marks, one per source whose copies
    /// are all fresh again. The position is stored in the store, so the next call, in any process,
    /// resumes there. Any number of processes may propagate concurrently.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// # use keyloom::{Memory, Store, Subspace};
    /// # use keyloom_tables::denormalize::DenormalizedFields;
    /// # use keyloom_tables::{Index, Table, entry};
    /// # let users = Table::<u32, String>::new(&Subspace::new("users"));
    /// # let by_author = Index::new(&Subspace::new("by"), |_, post: &(u32, String)| entry(post.0));
    /// # let posts = Table::<u32, (u32, String)>::new(&Subspace::new("posts")).with(&by_author);
    /// # let names = DenormalizedFields::new(&Subspace::new("names"), &users, &by_author, &posts,
    /// #     |name: &String| name.clone(), |post, _, name| post.1 = name.unwrap_or_default()).inline(0);
    /// # let users = users.with(&names);
    /// # let store = Memory::new();
    /// # store.transact(|txn| names.put_many(txn, (0..25).map(|id| (id, (7, String::new())))))?;
    /// store.transact(|txn| users.put(txn, &7, &"Ada".into()))?;
    /// let stopped = names.propagate_with(&store, 10, |_| ControlFlow::Break(()))?;
    /// assert_eq!((stopped.finished, stopped.written), (false, 10));
    /// let done = names.propagate(&store)?;
    /// assert_eq!((done.finished, done.removed, done.written), (true, 1, 15));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any error of the store; [`Error::At`] for a target, a source or the key of a mark that does
    /// not decode; [`Error::Other`] for a value that is not a mark; [`Error::NewerFormat`] for a
    /// mark of a newer program; the errors of [`Attached::at`](crate::Attached::at) if a source is
    /// marked and the index by source is [in a schema](DenormalizedFields::in_schema).
    pub fn propagate(&self, store: &impl Store) -> Result<Progress> {
        let batch = RepairOptions::default().batch;
        self.propagate_with(store, batch, |_| ControlFlow::Continue(()))
    }

    /// [`propagate`](DenormalizedFields::propagate) with at most `batch` targets per transaction.
    /// Calls `progress` after each transaction and stops if `progress` breaks.
    ///
    /// # Errors
    /// The errors of [`propagate`](DenormalizedFields::propagate).
    pub fn propagate_with(
        &self,
        store: &impl Store,
        batch: usize,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let mut size = BatchSize::new(batch);
        let mut done = Progress::default();
        while !done.finished {
            done =
                size.transact(store, |txn, batch| self.propagate_batch(txn, batch, done.clone()))?;
            if progress(&done).is_break() {
                break;
            }
        }
        Ok(done)
    }

    /// One step of [`propagate`](DenormalizedFields::propagate) in the caller's transaction, which
    /// visits at most `batch` targets of one source. `done` is the result of the previous step; the
    /// step adds its counts to `done` and returns it. A default `Progress` begins with the first
    /// mark.
    ///
    /// # Errors
    /// The errors of [`propagate`](DenormalizedFields::propagate).
    pub fn propagate_batch(
        &self,
        txn: &mut impl Writer,
        batch: usize,
        mut done: Progress,
    ) -> Result<Progress> {
        txn.guarded(|txn| {
            let next = self.next_mark(txn, done.position.last.as_deref())?;
            done.finished = next.is_none();
            let Some(Mark { key: mark, position }) = next else { return Ok(done) };
            self.require_readable(txn)?;
            let source_key: SK =
                self.space.unpack(&mark).map_err(|error| Error::from(error).at(&mark))?;
            let source = self.sources.get(txn, &source_key)?;
            let position = self.of_index(position, &source_key).map_err(|error| error.at(&mark))?;
            let Page { items: found, next } = self
                .by_source
                .query()
                .prefix(&source_key)
                .limit(batch)
                .after(position.as_ref())
                .page(txn)
                .map_err(|error| error.at(&mark))?;
            let keys = found.iter().map(Found::record_key).collect::<Result<Vec<K>>>()?;
            drop(found);
            let written = self.rewrite(txn, &keys, &source_key, source.as_ref())?;
            match &next {
                Some(position) => txn.put(&mark, &behind(position))?,
                None => txn.delete(&mark)?,
            }
            done.removed += u64::from(next.is_none());
            done.records += keys.len() as u64;
            done.written += written;
            done.position.last = Some(mark);
            Ok(done)
        })
    }

    /// The position of a mark. If the position belongs to another index, for example because the
    /// index was moved to another subspace, returns `None`. The propagation then begins at the
    /// first target.
    fn of_index(
        &self,
        position: Option<Continuation>,
        source: &SK,
    ) -> Result<Option<Continuation>> {
        let Some(position) = position else { return Ok(None) };
        position.of_query(&source.key_range(self.by_source.space()), Order::Ascending)
    }

    /// The next mark to process. `served` is the key of the mark processed last. This mark is
    /// processed again if its propagation has begun and was not reset. Otherwise returns the mark
    /// after it, or the first mark if there is none after it. Costs one range, one more if the mark
    /// was reset, and one more at the end of a round.
    fn next_mark(&self, txn: &impl Writer, served: Option<&[u8]>) -> Result<Option<Mark>> {
        let all = self.space.self_and_children();
        let Some(served) = served else { return Self::first_mark(txn, all) };
        let here = all.clone().intersect(KeyRange::starting_at(served));
        let mut mark = Self::first_mark(txn, here)?;
        if mark.as_ref().is_some_and(|mark| *mark.key == *served && mark.position.is_none()) {
            mark = Self::first_mark(txn, all.clone().resume(Order::Ascending, served))?;
        }
        match mark {
            Some(mark) => Ok(Some(mark)),
            None => Self::first_mark(txn, all),
        }
    }

    fn first_mark(txn: &impl Writer, among: KeyRange<'_>) -> Result<Option<Mark>> {
        let Some((key, value)) = txn.first(among)? else { return Ok(None) };
        let position = match &*value {
            [FORMAT] => None,
            [FORMAT, position @ ..] => Some(Continuation::from_bytes(position)),
            [format, ..] if *format > FORMAT => {
                return Err(Error::NewerFormat {
                    what: format!("the mark {}", display_named(&key)),
                    found: (*format).into(),
                    supported: FORMAT.into(),
                });
            }
            _ => return Err(Error::other(NoMark(display_named(&key).to_string()))),
        };
        Ok(Some(Mark { key: KeyBuf::from_slice(&key), position }))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{0} is not a mark of a source; is another kind of data in the subspace of the field?")]
struct NoMark(String);
