//! Which requests keep another one from being granted.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::key::Element;
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
    /// The resource for which it was read.
    at: Vec<Element>,
}

impl Locks {
    /// The requests of other sessions that keep these locks from being granted to `session`, whose
    /// request has this ticket; `u64::MAX` before it has one.
    ///
    /// A granted request excludes; a waiting one does if it is earlier, unless the session already
    /// has a claim on that resource: it would wait for a request that waits for it.
    pub(crate) fn excluding(
        &self,
        reader: &impl Reader,
        session: u64,
        ticket: u64,
        locks: &[Lock],
    ) -> Result<BTreeSet<RequestKey>> {
        let questions = Claims::of(locks)?.questions();
        let space = self.claims.space();
        let ranges: Vec<_> = questions.iter().map(|q| q.range(space.prefix())).collect();
        let mut found = Vec::new();
        let pages = reader.range_many(&ranges, FIRST_CLAIMS)?;
        for ((question, range), page) in questions.iter().zip(&ranges).zip(pages) {
            for (key, value) in page.entries {
                found.extend(self.read_claim(question, session, (key, value))?);
            }
            if let Some(last) = page.last {
                let rest = range.clone().after(&last);
                self.read_rest(reader, question, session, rest, &mut found)?;
            }
        }
        found.retain(|claim| !claim.is_waiting || claim.request.1 < ticket);
        let own = match found.iter().any(|claim| claim.is_waiting) {
            true => self.own_resources(reader, session)?,
            false => BTreeSet::new(),
        };
        found.retain(|claim| !claim.is_waiting || !own.contains(&claim.at));
        Ok(found.into_iter().map(|claim| claim.request).collect())
    }

    fn read_rest(
        &self,
        reader: &impl Reader,
        question: &Question,
        session: u64,
        range: KeyRange<'_>,
        found: &mut Vec<Excluding>,
    ) -> Result<()> {
        for entry in reader.range(range, Order::Ascending)? {
            found.extend(self.read_claim(question, session, entry?)?);
        }
        Ok(())
    }

    /// The claim in this entry, if it excludes and is not one of the session.
    fn read_claim<B: std::ops::Deref<Target = [u8]>>(
        &self,
        question: &Question,
        session: u64,
        entry: (B, B),
    ) -> Result<Option<Excluding>> {
        let found = Found::<B, RequestKey, ClaimParts>::new(&self.claims.space(), entry)?;
        let request = found.record_key()?;
        if request.0 == session {
            return Ok(None);
        }
        let (_, kind, _) = found.owned_parts()?;
        let (token, to) = found.covered::<ClaimFields>()?;
        let excludes = question.is_excluded_by(kind, &to);
        Ok(excludes.then_some(Excluding {
            request,
            is_waiting: token == 0,
            at: question.names.clone(),
        }))
    }

    /// The resources on which the session has granted claims.
    fn own_resources(&self, reader: &impl Reader, session: u64) -> Result<BTreeSet<Vec<Element>>> {
        let requests = self.requests_of(reader, session)?;
        let granted = requests.iter().filter(|(_, request)| request.is_granted());
        let mut all = BTreeSet::new();
        for (_, request) in granted {
            all.extend(Claims::of(&request.locks)?.modes.into_keys());
        }
        Ok(all)
    }

    /// Describes requests as blockers. Requests of sessions that are dead, and have no unfinished
    /// work, are returned apart: their claims can be removed.
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
        for key in keys {
            let Some(request) = self.requests.get(reader, &key)? else { continue };
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
