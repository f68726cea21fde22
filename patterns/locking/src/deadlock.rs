//! Deadlocks: sessions that wait for each other.

use std::collections::{BTreeMap, VecDeque};

use keyloom::{Reader, Result};

use crate::conflicts::Asker;
use crate::locks::Locks;
use crate::records::shown;
use crate::{Blocker, Lock, LockError};

/// How many sessions a search for a cycle visits at most. A longer cycle is resolved only by the
/// timeout of a waiter.
// Each visited session costs reads, so this bounds the time of one request.
const MOST_SESSIONS: usize = 1_000;

/// The largest number of other requests of a session that are checked for waiting sessions.
// Each check costs reads. With more requests, the search is made without the check.
const MOST_REQUESTS: usize = 16;

impl Locks {
    /// Refuses a request that closes a cycle of sessions, each of which waits for the next.
    ///
    /// The session whose request closes the cycle is the victim, as its request is the youngest.
    ///
    /// `ticket` is the ticket of the request if the request is in the queue. The search is made
    /// only if another session may wait for a different request of this session. Requests in a
    /// queue wait only for earlier requests. So in each cycle, some session waits with one request,
    /// while another session waits for a different request of it. The request or the polls of that
    /// session find the cycle.
    pub(crate) fn refuse_deadlock(
        &self,
        reader: &impl Reader,
        session: u64,
        ticket: Option<u64>,
        locks: &[Lock],
        blockers: &[Blocker],
    ) -> Result<()> {
        // If each waiter searched at each poll, n waiters of one lock would read n^3 keys: 100
        // waiters took 28 s to enter the queue on the memory store, in a debug build.
        if !self.is_awaited(reader, session, ticket)? {
            return Ok(());
        }
        let mut names: BTreeMap<u64, (u64, String)> = BTreeMap::new();
        // Breadth first: a short cycle is found before a long queue exhausts the limit of sessions.
        let mut next = VecDeque::from([(session, blockers.to_vec())]);
        while let Some((waiting, blockers)) = next.pop_front() {
            for blocker in blockers {
                if blocker.session == session {
                    let (lock, cycle) = (shown(locks), chain(&names, session, waiting));
                    return Err(LockError::Deadlock { lock, cycle }.into());
                }
                let id = blocker.session;
                if names.contains_key(&id) || names.len() >= MOST_SESSIONS {
                    continue;
                }
                names.insert(id, (waiting, blocker.name));
                next.push_back((id, self.blockers_of(reader, id)?));
            }
        }
        Ok(())
    }

    /// Whether another session may be waiting for a request of `session` other than `ticket`. True
    /// if there are many such requests.
    fn is_awaited(&self, reader: &impl Reader, session: u64, ticket: Option<u64>) -> Result<bool> {
        let (mut locks, mut requests) = (Vec::new(), 0);
        for found in self.requests.range(reader, session)? {
            let ((_, other), request) = found?;
            if Some(other) != ticket {
                locks.extend(request.locks);
                requests += 1;
            }
            if requests > MOST_REQUESTS {
                return Ok(true);
            }
        }
        Ok(requests > 0 && self.may_await(reader, session, &locks)?)
    }

    /// The blockers of all waiting requests of a session. Dead sessions are left out: the next
    /// request that they block removes their requests.
    fn blockers_of(&self, reader: &impl Reader, session: u64) -> Result<Vec<Blocker>> {
        let (now, requests) = (self.clock.now()?, self.requests_of(reader, session)?);
        let mut all = Vec::new();
        for (ticket, request) in requests.iter().filter(|(_, request)| !request.is_granted()) {
            let asker = Asker { session, ticket: *ticket, locks: &request.locks };
            all.extend(self.in_the_way(reader, now, asker, usize::MAX, &[])?.blockers);
        }
        Ok(all)
    }
}

/// The names of the sessions from the first one that `session` waits for, up to `last`.
fn chain(names: &BTreeMap<u64, (u64, String)>, session: u64, last: u64) -> Vec<String> {
    let (mut all, mut at) = (Vec::new(), last);
    while at != session {
        let Some((before, name)) = names.get(&at) else { break };
        all.push(format!("session {name:?}"));
        at = *before;
    }
    all.reverse();
    all
}
