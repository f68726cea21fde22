//! Which requests keep another one from being granted.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::{KeyRange, Order, Reader, Result};
use keyloom_tables::index::Found;

use crate::claims::{ClaimFields, ClaimParts, Claims, Question};
use crate::locks::{Locks, RequestKey};
use crate::records::Request;
use crate::{Blocker, Lock};

/// How many claims of each range are read in the common round trip. Mostly there are none.
const FIRST_CLAIMS: usize = 16;

/// A claim that excludes.
struct Excluding {
    request: RequestKey,
    is_waiting: bool,
}

/// The requests with claims that exclude.
#[derive(Debug, Default)]
pub(crate) struct Excluded {
    /// Those of other sessions.
    pub(crate) others: BTreeSet<RequestKey>,
    /// Those of the session itself, which it passes.
    pub(crate) own: BTreeSet<RequestKey>,
}

impl Locks {
    /// The requests that keep these locks from being granted to `session`, whose request has this
    /// ticket; `u64::MAX` before it has one.
    ///
    /// A granted request excludes. A waiting one does if it is earlier, unless it waits for a lock
    /// of this session: the two would wait for each other.
    pub(crate) fn excluding(
        &self,
        reader: &impl Reader,
        session: u64,
        ticket: u64,
        locks: &[Lock],
    ) -> Result<Excluded> {
        let questions = Claims::of(locks)?.questions();
        let space = self.claims.space();
        let ranges: Vec<_> = questions.iter().map(|q| q.range(space.prefix())).collect();
        let mut found = Vec::new();
        let pages = reader.range_many(&ranges, FIRST_CLAIMS)?;
        for ((question, range), page) in questions.iter().zip(&ranges).zip(pages) {
            for (key, value) in page.entries {
                found.extend(self.read_claim(question, (key, value))?);
            }
            if let Some(last) = page.last {
                let rest = range.clone().after(&last);
                self.read_rest(reader, question, rest, &mut found)?;
            }
        }
        let mut excluded = Excluded::default();
        let mut waiting = BTreeSet::new();
        for claim in found {
            let requests = match (claim.request.0 == session, claim.is_waiting) {
                (true, _) => &mut excluded.own,
                (false, true) if claim.request.1 < ticket => &mut waiting,
                (false, true) => continue,
                (false, false) => &mut excluded.others,
            };
            requests.insert(claim.request);
        }
        excluded.others.extend(self.not_waiting_for(reader, session, waiting)?);
        Ok(excluded)
    }

    /// Those of the waiting requests that no granted lock of the session excludes.
    fn not_waiting_for(
        &self,
        reader: &impl Reader,
        session: u64,
        waiting: BTreeSet<RequestKey>,
    ) -> Result<BTreeSet<RequestKey>> {
        if waiting.is_empty() {
            return Ok(waiting);
        }
        let granted = self.requests_of(reader, session)?.into_iter();
        let granted = granted.filter(|(_, request)| request.is_granted());
        let own = Claims::of(&granted.flat_map(|(_, request)| request.locks).collect::<Vec<_>>())?;
        let requests = self.requests.get_many(reader, waiting.iter())?;
        let mut all = BTreeSet::new();
        for (key, request) in waiting.into_iter().zip(requests) {
            let Some(request) = request else { continue };
            if !own.exclude(&Claims::of(&request.locks)?) {
                all.insert(key);
            }
        }
        Ok(all)
    }

    fn read_rest(
        &self,
        reader: &impl Reader,
        question: &Question,
        range: KeyRange<'_>,
        found: &mut Vec<Excluding>,
    ) -> Result<()> {
        for entry in reader.range(range, Order::Ascending)? {
            found.extend(self.read_claim(question, entry?)?);
        }
        Ok(())
    }

    /// The claim in this entry, if it excludes.
    fn read_claim<B: std::ops::Deref<Target = [u8]>>(
        &self,
        question: &Question,
        entry: (B, B),
    ) -> Result<Option<Excluding>> {
        let found = Found::<B, RequestKey, ClaimParts>::new(&self.claims.space(), entry)?;
        let request = found.record_key()?;
        let (_, kind, _) = found.owned_parts()?;
        let (token, to) = found.covered::<ClaimFields>()?;
        let excludes = question.is_excluded_by(kind, &to);
        Ok(excludes.then_some(Excluding { request, is_waiting: token == 0 }))
    }

    /// Describes requests as blockers, in the order of their tickets. Requests of sessions that are
    /// dead, and have no unfinished work, are returned apart: their claims can be removed.
    pub(crate) fn describe(
        &self,
        reader: &impl Reader,
        now: u64,
        keys: BTreeSet<RequestKey>,
    ) -> Result<(Vec<Blocker>, Vec<RequestKey>)> {
        let ids: Vec<u64> =
            keys.iter().map(|key| key.0).collect::<BTreeSet<_>>().into_iter().collect();
        let records = self.sessions.get_many(reader, ids.iter())?;
        let sessions: BTreeMap<_, _> = ids.into_iter().zip(records).collect();
        let (mut blockers, mut dead) = (Vec::new(), Vec::new());
        let requests = self.requests.get_many(reader, keys.iter())?;
        for (key, request) in keys.into_iter().zip(requests) {
            let Some(request) = request else { continue };
            let session = sessions.get(&key.0).and_then(Option::as_ref);
            let dead_at = session.map_or(0, |session| session.dead_at());
            let has_unfinished_work = now >= dead_at && self.work.get(reader, &key)?.is_some();
            if now >= dead_at && !has_unfinished_work {
                dead.push(key);
                continue;
            }
            blockers.push(blocker(
                key,
                &request,
                session.map_or("", |s| &s.name),
                dead_at,
                has_unfinished_work,
            ));
        }
        blockers.sort_by_key(|blocker| blocker.ticket);
        Ok((blockers, dead))
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
