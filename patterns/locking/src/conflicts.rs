//! The search for the requests that keep another request from being granted.
//!
//! A waiter reads a bounded number of keys: the first holders of each range, and the nearest
//! earlier waiter in each mode. It reads more only while all claims read so far belong to its own
//! session, to ended sessions, or to waiters that it may overtake. So n waiters of one lock form a
//! chain: each waits for its predecessor.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Deref;

use keyloom::{Entry, EntryPage, Error, KeyBuf, KeyRange, Order, Reader, Result};
use keyloom_tables::SchemaError;
use keyloom_tables::index::Found;

use crate::claims::{ClaimFields, ClaimOrder, ClaimParts, Claims, Question};
use crate::locks::Locks;
use crate::records::{Request, RequestKey};
use crate::{Blocker, Lock, LockError};

/// How many claims of each range are read at once. Most ranges are empty.
// A waiter reads one page, not all claims: otherwise n waiters of one lock cost n^2 keys.
const PAGE: usize = 16;

/// The request for which conflicts are searched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker<'l> {
    pub(crate) session: u64,
    /// The ticket of the request: `u64::MAX` before it has a ticket, 0 to search only for holders.
    pub(crate) ticket: u64,
    pub(crate) locks: &'l [Lock],
}

/// The requests that keep a request from being granted.
#[derive(Debug, Default)]
pub(crate) struct InTheWay {
    /// Requests of sessions that are alive or have unfinished work, in the order of their tickets.
    pub(crate) blockers: Vec<Blocker>,
    /// Requests without unfinished work whose sessions have ended: they can be removed.
    pub(crate) dead: BTreeSet<RequestKey>,
    /// Whether the session of the request has unfinished work.
    pub(crate) has_own_work: bool,
}

/// A claim that excludes the request.
struct Excluding {
    request: RequestKey,
    is_waiting: bool,
}

/// The excluding claims of one range, as far as the range has been read.
struct Claimants<'q> {
    question: &'q Question,
    held: VecDeque<RequestKey>,
    /// The waiting claims, from the nearest predecessor on.
    waiting: VecDeque<RequestKey>,
    /// The part of the range that is not read yet.
    rest: Option<KeyRange<'static>>,
}

impl Claimants<'_> {
    fn add(&mut self, asker: Asker<'_>, claim: Excluding) {
        match claim.is_waiting {
            _ if claim.request.0 == asker.session => {}
            false => self.held.push_back(claim.request),
            true if claim.request.1 < asker.ticket => self.waiting.push_back(claim.request),
            true => {}
        }
    }

    /// Removes and returns the next claims: at most a page of held ones, and at most `predecessors`
    /// waiting ones.
    fn take(&mut self, predecessors: usize) -> impl Iterator<Item = RequestKey> {
        let held = self.held.drain(..self.held.len().min(PAGE));
        held.chain(self.waiting.drain(..self.waiting.len().min(predecessors)))
    }

    fn is_empty(&self) -> bool {
        self.held.is_empty() && self.waiting.is_empty()
    }

    /// Drops the waiting claims if the locks of the session exclude all of them.
    fn pass(&mut self, own: &Claims) {
        match &self.question.order {
            ClaimOrder::Nearest(mode) if own.exclude_mode(mode) => {
                self.waiting.clear();
                self.rest = None;
            }
            _ => {}
        }
    }
}

fn not_built(error: Error) -> Error {
    match error.downcast_ref() {
        Some(SchemaError::NotReadable { .. } | SchemaError::Changed { .. }) => {
            LockError::NotBuilt { what: error.to_string() }.into()
        }
        _ => error,
    }
}

impl Locks {
    /// The requests that keep a request from being granted.
    ///
    /// A granted request blocks. An earlier waiting request blocks too, unless it waits for a lock
    /// of this session: otherwise the two would wait for each other. Not all blockers are read: see
    /// the [module](self). An empty result means that there is no blocker, with one exception: if
    /// more than `most_dead` requests of ended sessions are found, the search ends early and
    /// returns these.
    ///
    /// A remote store fetches the keys of `also` together with the claims.
    pub(crate) fn in_the_way(
        &self,
        reader: &impl Reader,
        now: u64,
        asker: Asker<'_>,
        most_dead: usize,
        also: &[KeyBuf],
    ) -> Result<InTheWay> {
        let questions = Claims::of(asker.locks)?.questions(asker.ticket);
        let pages = self.first_pages(reader, asker, &questions, also)?;
        // If the index is not readable, a held lock would not be found.
        self.claims.at(reader).map_err(not_built)?;
        let (mut all, has_own_work) = self.first_claims(reader, asker, &questions, pages)?;
        let mut found = InTheWay { has_own_work, ..InTheWay::default() };
        // Reads one predecessor first, and more only if it does not block. If each of n waiters
        // read all its blockers, they would read n^2 keys. So a poll costs the same with 10 waiters
        // as with 10,000.
        let (mut own, mut predecessors) = (None, 1);
        loop {
            if own.is_none() && all.iter().any(|some| !some.waiting.is_empty()) {
                let held = self.held_by(reader, asker.session)?;
                all.iter_mut().for_each(|some| some.pass(&held));
                own = Some(held);
            }
            let next: BTreeSet<_> =
                all.iter_mut().flat_map(|some| some.take(predecessors)).collect();
            self.judge(reader, now, next, own.as_ref(), &mut found)?;
            if !found.blockers.is_empty() || found.dead.len() > most_dead {
                break;
            }
            predecessors = PAGE;
            self.read_on(reader, asker, &mut all)?;
            if all.iter().all(Claimants::is_empty) {
                break;
            }
        }
        found.blockers.sort_by_key(|blocker| blocker.ticket);
        Ok(found)
    }

    /// The requests of other sessions whose held locks exclude `locks`, although `locks` are
    /// granted.
    pub(crate) fn holders_beside(
        &self,
        reader: &impl Reader,
        session: u64,
        locks: &[Lock],
    ) -> Result<BTreeSet<RequestKey>> {
        let mut all = BTreeSet::new();
        for question in Claims::of(locks)?.questions(0) {
            let range = question.range(self.claims.space().prefix());
            for entry in reader.range(range, Order::Ascending)? {
                let found = self.read_claim(&question, entry?)?;
                let other = found.filter(|claim| !claim.is_waiting && claim.request.0 != session);
                all.extend(other.map(|claim| claim.request));
            }
        }
        Ok(all)
    }

    /// Whether another session may wait for one of these locks of `session`. Reads one page of each
    /// range, and returns true if a range has more.
    pub(crate) fn may_await(
        &self,
        reader: &impl Reader,
        session: u64,
        locks: &[Lock],
    ) -> Result<bool> {
        let mut questions = Claims::of(locks)?.questions(u64::MAX);
        questions.retain(|question| !matches!(question.order, ClaimOrder::Held));
        let space = self.claims.space();
        let ranges: Vec<_> = questions.iter().map(|q| q.range(space.prefix())).collect();
        for (question, page) in questions.iter().zip(reader.range_many(&ranges, PAGE)?) {
            if page.last.is_some() {
                return Ok(true);
            }
            for entry in page.entries {
                let found = self.read_claim(question, entry)?;
                if found.is_some_and(|claim| claim.is_waiting && claim.request.0 != session) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Reads the first page of each range, and of the unfinished work of the session, in one round
    /// trip.
    fn first_pages<'r, R: Reader>(
        &self,
        reader: &'r R,
        asker: Asker<'_>,
        questions: &[Question],
        also: &[KeyBuf],
    ) -> Result<Vec<EntryPage<R::Bytes<'r>>>> {
        let space = self.claims.space();
        let mut ranges: Vec<_> = questions.iter().map(|q| q.range(space.prefix())).collect();
        ranges.push(KeyRange::children(&self.work.space().pack(&asker.session)));
        if reader.prefetched() > 0 {
            // The store caches a range of one key like a get.
            ranges.extend(also.iter().map(|key| KeyRange::single(key)));
        }
        let mut pages = reader.range_many(&ranges, PAGE)?;
        pages.truncate(questions.len() + 1);
        Ok(pages)
    }

    /// The claims on the first page of each range, and whether the session has unfinished work.
    fn first_claims<'q, R: Reader>(
        &self,
        reader: &R,
        asker: Asker<'_>,
        questions: &'q [Question],
        mut pages: Vec<EntryPage<R::Bytes<'_>>>,
    ) -> Result<(Vec<Claimants<'q>>, bool)> {
        let has_own_work = pages.pop().is_some_and(|work| !work.entries.is_empty());
        let mut all = Vec::with_capacity(questions.len());
        for (question, page) in questions.iter().zip(pages) {
            let (held, waiting) = (VecDeque::new(), VecDeque::new());
            let mut some = Claimants { question, held, waiting, rest: None };
            for entry in page.entries {
                if let Some(claim) = self.read_claim(question, entry)? {
                    some.add(asker, claim);
                }
            }
            let range = question.range(self.claims.space().prefix());
            some.rest = page.last.map(|last| range.after(&last).into_owned());
            if let ClaimOrder::ByName = question.order {
                self.read_whole(reader, asker, &mut some)?;
            }
            all.push(some);
        }
        Ok((all, has_own_work))
    }

    /// Reads the rest of a range that is in the order of names. Then sorts the held claims by
    /// ticket, and the waiting claims from the nearest predecessor on.
    fn read_whole(
        &self,
        reader: &impl Reader,
        asker: Asker<'_>,
        some: &mut Claimants<'_>,
    ) -> Result<()> {
        if let Some(rest) = some.rest.take() {
            for entry in reader.range(rest, Order::Ascending)? {
                if let Some(claim) = self.read_claim(some.question, entry?)? {
                    some.add(asker, claim);
                }
            }
        }
        some.held.make_contiguous().sort_unstable_by_key(|key| key.1);
        some.waiting.make_contiguous().sort_unstable_by_key(|key| std::cmp::Reverse(key.1));
        Ok(())
    }

    /// If the claims of all ranges have been judged, reads the next page of each range, in one
    /// round trip. Repeats this until a claim is found or the ranges end.
    fn read_on(
        &self,
        reader: &impl Reader,
        asker: Asker<'_>,
        all: &mut [Claimants<'_>],
    ) -> Result<()> {
        while all.iter().all(Claimants::is_empty) {
            let mut open: Vec<_> = all.iter_mut().filter(|some| some.rest.is_some()).collect();
            let ranges: Vec<_> = open.iter_mut().filter_map(|some| some.rest.take()).collect();
            if ranges.is_empty() {
                return Ok(());
            }
            let pages = reader.range_many(&ranges, PAGE)?;
            for ((some, range), page) in open.into_iter().zip(ranges).zip(pages) {
                for entry in page.entries {
                    if let Some(claim) = self.read_claim(some.question, entry)? {
                        some.add(asker, claim);
                    }
                }
                some.rest = page.last.map(|last| range.after(&last).into_owned());
            }
        }
        Ok(())
    }

    /// The claims of all locks that a session holds.
    fn held_by(&self, reader: &impl Reader, session: u64) -> Result<Claims> {
        let granted = self.requests_of(reader, session)?.into_iter();
        let granted = granted.filter(|(_, request)| request.is_granted());
        Claims::of(&granted.flat_map(|(_, request)| request.locks).collect::<Vec<_>>())
    }

    /// The claim in this entry, if it excludes the request.
    fn read_claim<B: Deref<Target = [u8]>>(
        &self,
        question: &Question,
        entry: Entry<B>,
    ) -> Result<Option<Excluding>> {
        let found = Found::<B, RequestKey, ClaimParts>::new(&self.claims.space(), entry)?;
        let request = found.record_key()?;
        let (_, _, kind, ..) = found.owned_parts()?;
        let (token, to) = found.covered::<ClaimFields>()?;
        let excludes = question.is_excluded_by(kind, &to);
        Ok(excludes.then_some(Excluding { request, is_waiting: token == 0 }))
    }

    /// Adds the blocking requests, except waiting requests that the `own` locks of the session
    /// exclude: the session may overtake these.
    fn judge(
        &self,
        reader: &impl Reader,
        now: u64,
        keys: BTreeSet<RequestKey>,
        own: Option<&Claims>,
        found: &mut InTheWay,
    ) -> Result<()> {
        let mut requests = Vec::with_capacity(keys.len());
        for (key, request) in keys.iter().zip(self.requests.get_many(reader, keys.iter())?) {
            let Some(request) = request else { continue };
            let is_passed = match own {
                Some(own) if !request.is_granted() => own.exclude(&Claims::of(&request.locks)?),
                _ => false,
            };
            if !is_passed {
                requests.push((*key, request));
            }
        }
        let ids: BTreeSet<u64> = requests.iter().map(|(key, _)| key.0).collect();
        let records = self.sessions.get_many(reader, ids.iter())?;
        let sessions: BTreeMap<_, _> = ids.into_iter().zip(records).collect();
        for (key, request) in requests {
            let session = sessions.get(&key.0).and_then(Option::as_ref);
            let dead_at = session.map_or(0, |session| session.dead_at());
            let has_unfinished_work = now >= dead_at && self.work.get(reader, &key)?.is_some();
            if now >= dead_at && !has_unfinished_work {
                found.dead.insert(key);
                continue;
            }
            let name = session.map_or("", |s| &s.name);
            found.blockers.push(blocker(key, &request, name, dead_at, has_unfinished_work));
        }
        Ok(())
    }
}

fn blocker(
    (session, ticket): RequestKey,
    request: &Request,
    name: &str,
    dead_at: u64,
    has_unfinished_work: bool,
) -> Blocker {
    Blocker {
        session,
        ticket,
        name: name.to_owned(),
        locks: request.shown(),
        is_waiting: !request.is_granted(),
        has_unfinished_work,
        dead_at,
    }
}
