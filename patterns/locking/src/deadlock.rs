//! Deadlocks: sessions that wait for each other.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::{Reader, Result};

use crate::locks::Locks;
use crate::records::shown;
use crate::{Blocker, Lock, LockError};

/// How many sessions a search for a cycle visits. A longer chain of waits ends by a deadline.
const MOST_SESSIONS: usize = 1_000;

impl Locks {
    /// Refuses a request that closes a cycle of sessions, each of which waits for the next.
    ///
    /// The session whose request closes the cycle is the victim, as its request is the youngest.
    pub(crate) fn refuse_deadlock(
        &self,
        reader: &impl Reader,
        session: u64,
        locks: &[Lock],
        blockers: &[Blocker],
    ) -> Result<()> {
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

    /// The blockers of all waiting requests of a session.
    pub(crate) fn blockers_of(&self, reader: &impl Reader, session: u64) -> Result<Vec<Blocker>> {
        let mut keys = BTreeSet::new();
        for (ticket, request) in self.requests_of(reader, session)? {
            if !request.is_granted() {
                keys.extend(self.excluding(reader, session, ticket, &request.locks)?.others);
            }
        }
        // Dead sessions are left out: the next request in their way removes theirs.
        Ok(self.describe(reader, self.clock.now()?, keys)?.0)
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
