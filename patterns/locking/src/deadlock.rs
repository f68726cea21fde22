//! Deadlocks: sessions that wait for each other.

use std::collections::{BTreeMap, VecDeque};

use keyloom::{Reader, Result};

use crate::conflicts::Asker;
use crate::locks::Locks;
use crate::records::shown;
use crate::{Blocker, Lock, LockError};

/// How many sessions a search for a cycle visits. A longer chain of waits ends by a deadline.
// Each visited session costs reads, so this bounds the time of one request.
const MOST_SESSIONS: usize = 1_000;

/// For how many other requests of a session it is read whether a session waits for them.
// With more, the search is made without this check, which costs reads for each request.
const MOST_REQUESTS: usize = 16;

impl Locks {
    /// Refuses a request that closes a cycle of sessions, each of which waits for the next.
    ///
    /// The session whose request closes the cycle is the victim, as its request is the youngest.
    ///
    /// `ticket` is that of the request if it is in the queue. The session searches only if another
    /// one waits for another request of it. Requests in a queue wait for earlier ones, so each
    /// cycle contains a session that waits with one request, while a session waits for another one
    /// of its requests. The request or the polls of that session find the cycle.
    pub(crate) fn refuse_deadlock(
        &self,
        reader: &impl Reader,
        session: u64,
        ticket: Option<u64>,
        locks: &[Lock],
        blockers: &[Blocker],
    ) -> Result<()> {
        // A search by each waiter at each poll reads n^3 keys for n waiters of one lock: 100 of
        // them took 28 s to enter on the memory store, in a debug build.
        if !self.is_awaited(reader, session, ticket)? {
            return Ok(());
        }
        let mut names: BTreeMap<u64, (u64, String)> = BTreeMap::new();
        // Breadth first: a short cycle is found before a long queue has used up the sessions.
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
    /// request in their way removes theirs.
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
