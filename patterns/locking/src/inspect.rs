//! Reports holders and waiters, and removes the locks of ended sessions.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use keyloom::{Reader, Result, Store, Writer};
use keyloom_kit::{BatchSize, Inconsistency, Progress, RepairOptions, Rule};

#[cfg(doc)]
use crate::LockError;
use crate::conflicts::Asker;
use crate::locks::Locks;
use crate::records::{Request, SessionRecord};
use crate::tokens::TICKETS;
use crate::{Blocker, Grant};

/// How many requests one transaction of a sweep removes at most. The number is small, since the
/// transaction may conflict with requests for the same locks.
pub(crate) const SWEPT: usize = 100;

/// A request with its session, as [`Locks::requests`] reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestInfo {
    /// The id of the session.
    pub session: u64,
    /// The session, `None` if its record is missing.
    pub owner: Option<SessionRecord>,
    /// The number of the request.
    pub ticket: u64,
    /// The locks, the fencing token, and the time of the request or of its grant.
    pub request: Request,
    /// Sessions for which the request waits, as in [`Outcome::Waiting`](crate::Outcome::Waiting);
    /// empty if the request is granted.
    pub waits_for: Vec<Blocker>,
    /// The operation that is unfinished under the locks.
    pub unfinished: Option<String>,
}

impl RequestInfo {
    /// The grant, if the locks are held. Pass it to [`Locks::revoke`] to revoke the locks.
    pub fn grant(&self) -> Option<Grant> {
        let Self { session, ticket, .. } = *self;
        let token = self.request.token;
        (token > 0).then_some(Grant { session, ticket, token })
    }
}

impl Locks {
    /// All sessions with a record, including sessions whose lease has ended.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn sessions(&self, reader: &impl Reader) -> Result<Vec<(u64, SessionRecord)>> {
        self.sessions.range(reader, ..)?.collect()
    }

    /// All requests, granted and waiting, and the sessions that they wait for. Costs a range of the
    /// sessions, a range of the requests, a get for each request, and the reads of a poll for each
    /// waiting request.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn requests(&self, reader: &impl Reader) -> Result<Vec<RequestInfo>> {
        let now = self.clock.now()?;
        let owners: BTreeMap<_, _> = self.sessions(reader)?.into_iter().collect();
        let mut all = Vec::new();
        for found in self.requests.range(reader, ..)? {
            let ((session, ticket), request) = found?;
            let waits_for = match request.is_granted() {
                true => Vec::new(),
                false => {
                    let asker = Asker { session, ticket, locks: &request.locks };
                    self.in_the_way(reader, now, asker, usize::MAX, &[])?.blockers
                }
            };
            let unfinished = self.work.get(reader, &(session, ticket))?.map(|work| work.operation);
            let owner = owners.get(&session).cloned();
            all.push(RequestInfo { session, owner, ticket, request, waits_for, unfinished });
        }
        Ok(all)
    }

    /// Takes a lock away from its holder. The next [verified](Locks::verify) write of the holder
    /// fails.
    ///
    /// # Errors
    /// [`LockError::Lost`] if the lock is no longer held; [`LockError::UnfinishedWork`]; any error
    /// of the store.
    pub fn revoke(&self, txn: &mut impl Writer, grant: Grant) -> Result<()> {
        self.release(txn, grant)
    }

    /// Removes sessions whose lease and grace period are over, and their requests, in bounded
    /// transactions. Requests with unfinished work stay. A new request also removes the ended
    /// requests that block it; call `sweep` periodically for the rest. In the progress, `records`
    /// is the number of ended sessions, and `removed` the number of their requests.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn sweep(&self, store: &impl Store) -> Result<Progress> {
        self.sweep_with(store, &RepairOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// [`sweep`](Locks::sweep) with options. Calls `progress` after each transaction and stops if
    /// `progress` breaks. The next sweep removes the rest; it needs no position.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn sweep_with<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let mut size = BatchSize::new(options.batch.min(SWEPT));
        let mut done = Progress::default();
        // The sessions are listed in a snapshot: a transaction that reads all sessions would
        // conflict with each of their heartbeats.
        let now = self.clock.now()?;
        let sessions = self.sessions(&store.snapshot()?)?;
        let mut ended = sessions.iter().filter(|(_, session)| now >= session.dead_at()).peekable();
        done.finished = ended.peek().is_none();
        while let Some((session, _)) = ended.peek() {
            let step =
                size.transact(store, |txn, batch| self.remove_ended(txn, *session, batch))?;
            if let Some((some, is_complete)) = step {
                done.removed += some;
                done.records += u64::from(is_complete);
            }
            // Without a result, the session was renewed or removed after the snapshot.
            if step.is_none_or(|(_, is_complete)| is_complete) {
                ended.next();
            }
            done.finished = ended.peek().is_none();
            if progress(&done).is_break() {
                break;
            }
        }
        Ok(done)
    }

    /// Removes some requests of a session, and its record with the last request. Returns `None` if
    /// the session has not ended or is gone.
    fn remove_ended(
        &self,
        txn: &mut impl Writer,
        session: u64,
        batch: usize,
    ) -> Result<Option<(u64, bool)>> {
        let now = self.clock.now()?;
        let ended = self.sessions.get(txn, &session)?.is_some_and(|s| now >= s.dead_at());
        if !ended {
            return Ok(None);
        }
        let (mut removed, mut kept) = (0, false);
        for (ticket, _) in self.requests_of(txn, session)? {
            if self.work.get(txn, &(session, ticket))?.is_some() {
                kept = true;
            } else if removed < batch {
                self.requests.delete(txn, &(session, ticket))?;
                removed += 1;
            } else {
                return Ok(Some((removed as u64, false)));
            }
        }
        if !kept {
            self.sessions.delete(txn, &session)?;
        }
        Ok(Some((removed as u64, true)))
    }

    /// Faults: granted requests that exclude each other, tokens that were never issued, and work
    /// without a lock.
    pub(crate) fn check_holders(&self, reader: &impl Reader) -> Result<Vec<Inconsistency>> {
        let mut faults = Vec::new();
        for (key, _) in self.unfinished(reader)? {
            if self.requests.get(reader, &key)?.is_none() {
                let fault = Inconsistency::new(self.work.space().pack(&key), Rule::Dangling);
                faults.push(fault.with_text("is work without a lock"));
            }
        }
        let last = self.last_of_all(reader)?;
        for found in self.requests.range(reader, ..)? {
            let (key, request) = found?;
            let stored = self.requests.space().pack(&key);
            if request.token.max(key.1 / TICKETS) > last {
                let fault = Inconsistency::new(stored.clone(), Rule::Wrong);
                faults.push(fault.with_text("has a token that was not given yet"));
            }
            if !request.is_granted() {
                continue;
            }
            let others = self.holders_beside(reader, key.0, &request.locks)?;
            faults.extend(others.into_iter().map(|other| {
                let text = format!(
                    "is granted {} beside the request {other:?}, which excludes it",
                    request.shown()
                );
                Inconsistency::new(stored.clone(), Rule::Contested).with_text(text)
            }));
        }
        Ok(faults)
    }
}
