//! Deadlocks: sessions that wait for each other.

use std::collections::BTreeMap;

use keyloom::{Order, Reader, Result};

use crate::conflicts::Asker;
use crate::locks::Locks;
use crate::records::shown;
use crate::{Blocker, Lock, LockError};

/// How many sessions a search for a cycle visits. A longer chain of waits ends by a deadline.
const MOST_SESSIONS: usize = 1_000;

impl Locks {
    /// Refuses a request that closes a cycle of sessions, each of which waits for the next.
    ///
    /// The session whose request closes the cycle is the victim, as its request is the youngest.
    ///
    /// `ticket` is that of the request if it is in the queue. A session without other requests is
    /// not searched. Requests in a queue wait for earlier ones, so each cycle contains a session
    /// that has at least two requests: it waits with one, and others wait for another one. The
    /// request or the polls of that session find the cycle.
    pub(crate) fn refuse_deadlock(
        &self,
        reader: &impl Reader,
        session: u64,
        ticket: Option<u64>,
        locks: &[Lock],
        blockers: &[Blocker],
    ) -> Result<()> {
        if !self.has_other_requests(reader, session, ticket)? {
            return Ok(());
        }
        let mut names: BTreeMap<u64, (u64, String)> = BTreeMap::new();
        let mut next: Vec<(u64, Vec<Blocker>)> = vec![(session, blockers.to_vec())];
        while let Some((waiting, blockers)) = next.pop() {
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
                next.push((id, self.blockers_of(reader, id)?));
            }
        }
        Ok(())
    }

    /// Whether a session has a request beside the one with this ticket. Reads two keys at most.
    fn has_other_requests(
        &self,
        reader: &impl Reader,
        session: u64,
        ticket: Option<u64>,
    ) -> Result<bool> {
        for found in self.requests.range(reader, session, Order::Ascending)? {
            let ((_, other), _) = found?;
            if Some(other) != ticket {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The blockers of all waiting requests of a session. Dead sessions are left out: the next
    /// request in their way removes theirs.
    fn blockers_of(&self, reader: &impl Reader, session: u64) -> Result<Vec<Blocker>> {
        let (now, requests) = (self.clock.now()?, self.requests_of(reader, session)?);
        let mut all = Vec::new();
        for (ticket, request) in requests.iter().filter(|(_, request)| !request.is_granted()) {
            let asker = Asker { session, ticket: *ticket, locks: &request.locks };
            all.extend(self.in_the_way(reader, now, asker)?.blockers);
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
