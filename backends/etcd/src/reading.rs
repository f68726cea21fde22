//! Reads of keys and ranges at a revision.

use std::future::Future;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use etcd_client::{
    Error as EtcdError, GetOptions, GetResponse, KvClient, ResponseHeader, SortOrder, SortTarget,
    Txn, TxnOp, TxnOpResponse,
};
use tokio::task::JoinSet;

use super::{Shared, error};
use keyloom::backend::Span;
use keyloom::{Entry, Order, Result};
use keyloom_remote::Outcome;

/// A key's value, and the revision of its last change.
pub(super) type Found = Option<(Bytes, i64)>;

/// Some entries, each with the revision of its last change.
pub(super) struct Entries {
    pub(super) entries: Vec<(Entry<Bytes>, i64)>,
    pub(super) more: bool,
    pub(super) count: u64,
    pub(super) revision: i64,
}

/// A start and an end, as keys of etcd.
type Bounds = (Vec<u8>, Vec<u8>);

/// The number of concurrent requests for the parts of one `get_many` or `range_many`. Requests up
/// to this number count as one round trip.
// A lower number adds round trips to large reads; a higher one lets a single read occupy a member.
const MOST_UNDER_WAY: usize = 16;
/// The number of ranges in the concurrent requests, with the server's default options.
pub(super) const MOST_RANGES: usize = MOST_UNDER_WAY * 128;
/// The largest number of entries that the requests for many ranges return together.
// Bounds the memory of the answers: with 2,048 ranges, each range gets a page of 128 entries. A
// lower limit adds round trips for ranges with more entries.
const MOST_ENTRIES: usize = 1 << 18;

impl Shared {
    /// Sends a request to the members and counts it as one round trip.
    fn ask<T>(
        &self,
        revision: Option<i64>,
        ask: impl AsyncFn(KvClient, bool) -> Result<T, EtcdError>,
    ) -> Result<T> {
        self.answer(self.link.wait(self.members.read(revision, ask)), revision)
    }

    fn answer<T>(&self, outcome: Outcome<Result<T, EtcdError>>, at: Option<i64>) -> Result<T> {
        match outcome {
            Outcome::Answered(Ok(answer)) => Ok(answer),
            Outcome::Answered(Err(failure)) => Err(error::of_read(&self.link, &failure, at)),
            Outcome::Refused(error) => Err(error),
            Outcome::TimedOut => Err(self.link.silent()),
        }
    }

    /// The newest revision, from the leader.
    pub(super) fn revision(&self) -> Result<i64> {
        self.ask(None, async |client, local| self.ask_revision(client, local).await)
    }

    /// Like [`revision`](Self::revision), but not counted as a round trip: for the opening of a
    /// store.
    pub(super) fn first_revision(&self) -> Result<i64> {
        let ask = async |client, local| self.ask_revision(client, local).await;
        self.answer(
            self.link.wait_uncounted(self.link.timeout(), self.members.read(None, ask)),
            None,
        )
    }

    async fn ask_revision(&self, mut client: KvClient, _: bool) -> Result<i64, EtcdError> {
        let options = GetOptions::new().with_count_only();
        let answer = client.get(self.keys.mark(), Some(options)).await?;
        Ok(self.saw(answer.header()))
    }

    /// Records the revision of an answer, and returns it.
    pub(super) fn saw(&self, header: Option<&ResponseHeader>) -> i64 {
        let revision = revision_of(header);
        self.newest_seen.fetch_max(revision, Relaxed);
        revision
    }

    /// The newest revision in any answer.
    pub(super) fn newest_seen(&self) -> i64 {
        self.newest_seen.load(Relaxed)
    }

    /// The values of `keys` at `revision`, or at the newest revision if it is `None`. Returns the
    /// revision too.
    pub(super) fn values(
        &self,
        keys: &[&[u8]],
        revision: Option<i64>,
    ) -> Result<(Vec<Found>, i64)> {
        let keys: Vec<Vec<u8>> = keys.iter().map(|key| self.keys.outer(key)).collect();
        let parts: Vec<Vec<Vec<u8>>> =
            keys.chunks(self.room.max_operations).map(<[_]>::to_vec).collect();
        let (values, revision) = self.ask_parts(&parts, revision, part_of_values)?;
        Ok((values.into_iter().flatten().collect(), revision))
    }

    /// Reads at most `limit` entries of each span at `revision`, or at the newest revision if it is
    /// `None`. Returns the revision too.
    pub(super) fn entries_of_many(
        &self,
        spans: &[Span],
        limit: usize,
        revision: Option<i64>,
    ) -> Result<(Vec<Entries>, i64)> {
        let limit = limit.min(MOST_ENTRIES / spans.len().max(1)).max(1);
        let bounds: Vec<Bounds> = spans.iter().map(|span| self.keys.bounds(span)).collect();
        let parts: Vec<(Vec<Bounds>, usize)> =
            bounds.chunks(self.room.most_ranges()).map(|part| (part.to_vec(), limit)).collect();
        let (answers, revision) = self.ask_parts(&parts, revision, part_of_ranges)?;
        let entries = answers.into_iter().flatten();
        Ok((entries.map(|answer| self.entries_of(answer, revision)).collect(), revision))
    }

    /// Sends one request per part, several concurrently. Returns the answers in the order of
    /// `parts`, and their common revision.
    fn ask_parts<P, T, F>(
        &self,
        parts: &[P],
        revision: Option<i64>,
        ask_part: impl Fn(KvClient, P, Option<i64>, bool) -> F,
    ) -> Result<(Vec<T>, i64)>
    where
        P: Clone,
        T: Send + 'static,
        F: Future<Output = Result<(T, i64), EtcdError>> + Send + 'static,
    {
        // Concurrent requests count as one round trip.
        let turns = parts.len().div_ceil(MOST_UNDER_WAY);
        self.link.waited_also(turns.saturating_sub(1));
        self.ask(revision, async |client, local| {
            let ask = |at, local| {
                let ask_part = &ask_part;
                let client = client.clone();
                side_by_side(parts, move |part| ask_part(client.clone(), part, at, local))
            };
            // The first read of a transaction has no revision. Fetching a revision first would cost
            // every transaction a round trip. So all requests are sent at once, and sent again only
            // if another writer commits between them.
            let answers = ask(revision, local).await?;
            let newest = answers.iter().map(|(_, at)| *at).max().unwrap_or(0);
            self.newest_seen.fetch_max(newest, Relaxed);
            let at = revision.unwrap_or(newest);
            let of_one_moment = revision.is_some() || answers.iter().all(|(_, each)| *each == at);
            let answers = match of_one_moment {
                true => answers,
                // Another writer committed in between: read all parts again, at the newest revision
                // seen.
                false => {
                    self.link.waited_also(turns);
                    ask(Some(at), true).await?
                }
            };
            Ok((answers.into_iter().map(|(answer, _)| answer).collect(), at))
        })
    }

    pub(super) fn entries(
        &self,
        span: &Span,
        wanted: Wanted,
        revision: Option<i64>,
    ) -> Result<Entries> {
        let (start, end) = self.keys.bounds(span);
        let mut options = GetOptions::new().with_range(end).with_revision(revision.unwrap_or(0));
        options = match wanted {
            // No sort order is set: etcd returns keys in ascending order anyway, and only without a
            // sort order it stops reading at the limit.
            Wanted::Page(Order::Ascending, limit) => options.with_limit(signed(limit)),
            Wanted::Page(Order::Descending, limit) => {
                options.with_limit(signed(limit)).with_sort(SortTarget::Key, SortOrder::Descend)
            }
            Wanted::Keys => options.with_keys_only(),
            Wanted::Count => options.with_count_only(),
        };
        let answer = self.ask(revision, async |mut client, local| {
            let options = if local { options.clone().with_serializable() } else { options.clone() };
            client.get(start.clone(), Some(options)).await
        })?;
        let newest = self.saw(answer.header());
        Ok(self.entries_of(answer, revision.unwrap_or(newest)))
    }

    fn entries_of(&self, mut answer: GetResponse, revision: i64) -> Entries {
        Entries {
            more: answer.more(),
            count: u64::try_from(answer.count()).unwrap_or(0),
            revision,
            entries: answer
                .take_kvs()
                .into_iter()
                .map(|entry| {
                    let changed = entry.mod_revision();
                    let (key, value) = entry.into_key_value();
                    ((self.keys.inner(key), Bytes::from(value)), changed)
                })
                .collect(),
        }
    }
}

/// The part of a range to read.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    Page(Order, usize),
    Keys,
    Count,
}

/// Sends one request per part and returns the answers in the order of `parts`.
async fn side_by_side<P: Clone, T, F>(
    parts: &[P],
    ask_part: impl Fn(P) -> F,
) -> Result<Vec<T>, EtcdError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, EtcdError>> + Send + 'static,
{
    let mut parts = parts.iter().cloned().enumerate();
    let mut under_way = JoinSet::new();
    let mut ask = |under_way: &mut JoinSet<_>| {
        if let Some((position, part)) = parts.next() {
            let asked = ask_part(part);
            under_way.spawn(async move { (position, asked.await) });
        }
    };
    (0..MOST_UNDER_WAY).for_each(|_| ask(&mut under_way));
    let mut answered = Vec::new();
    let mut failed = None;
    // Awaits all requests, also after a failure: etcd 3.5 before 3.5.7 may crash if a transaction
    // with reads is cancelled.
    while let Some(joined) = under_way.join_next().await {
        match joined {
            Ok((position, Ok(part))) => answered.push((position, part)),
            Ok((_, Err(error))) => failed = Some(error),
            Err(error) => failed = Some(EtcdError::IoError(std::io::Error::other(error))),
        }
        if failed.is_none() {
            ask(&mut under_way);
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    answered.sort_unstable_by_key(|(position, _)| *position);
    Ok(answered.into_iter().map(|(_, part)| part).collect())
}

/// Reads several ranges in one request.
async fn part_of_ranges(
    mut client: KvClient,
    (bounds, limit): (Vec<Bounds>, usize),
    revision: Option<i64>,
    local: bool,
) -> Result<(Vec<GetResponse>, i64), EtcdError> {
    // Without a sort order: see `entries`.
    let mut options = GetOptions::new().with_revision(revision.unwrap_or(0));
    options = options.with_limit(signed(limit));
    if local {
        options = options.with_serializable();
    }
    let range = |(start, end)| TxnOp::get(start, Some(options.clone().with_range(end)));
    let ranges: Vec<TxnOp> = bounds.into_iter().map(range).collect();
    let answer = client.txn(Txn::new().and_then(ranges)).await?;
    let entries = answer.op_responses().into_iter().filter_map(|answer| match answer {
        TxnOpResponse::Get(answer) => Some(answer),
        _ => None,
    });
    Ok((entries.collect(), revision_of(answer.header())))
}

/// Reads some values in one request.
async fn part_of_values(
    mut client: KvClient,
    mut keys: Vec<Vec<u8>>,
    revision: Option<i64>,
    local: bool,
) -> Result<(Vec<Found>, i64), EtcdError> {
    let mut options = GetOptions::new().with_revision(revision.unwrap_or(0));
    if local {
        options = options.with_serializable();
    }
    let found = |mut answer: GetResponse| {
        let entry = answer.take_kvs().into_iter().next()?;
        let changed = entry.mod_revision();
        Some((Bytes::from(entry.into_key_value().1), changed))
    };
    if keys.len() == 1 {
        let answer = client.get(keys.pop().unwrap_or_default(), Some(options)).await?;
        let revision = revision_of(answer.header());
        return Ok((vec![found(answer)], revision));
    }
    let gets: Vec<TxnOp> =
        keys.into_iter().map(|key| TxnOp::get(key, Some(options.clone()))).collect();
    let answer = client.txn(Txn::new().and_then(gets)).await?;
    let values = answer.op_responses().into_iter().map(|answer| match answer {
        TxnOpResponse::Get(answer) => found(answer),
        _ => None,
    });
    Ok((values.collect(), revision_of(answer.header())))
}

fn revision_of(header: Option<&ResponseHeader>) -> i64 {
    header.map_or(0, ResponseHeader::revision)
}

fn signed(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
