//! Elections: one session is the leader, and the others can read its value.

use std::fmt;
use std::time::{Duration, Instant};

use keyloom::{Reader, Result, Store};
use keyloom_tables::Table;
use serde::{Deserialize, Serialize};

use super::Of;
use crate::path::PathPart;
use crate::{Grant, Guard, Locks, Patience, Session};

#[cfg(doc)]
use crate::LockError;

/// How long an observer sleeps at most: a leader's session may end without a change of its record.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// A leader, as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    /// The id of the session.
    pub session: u64,
    /// The number of its request.
    pub ticket: u64,
    /// The fencing token: greater than the tokens of all earlier leaders.
    pub token: u64,
    /// The value, for example the address of the leader.
    pub value: Vec<u8>,
}

/// An election: sessions campaign, and the first session leads until it resigns or ends; see the
/// [module](super). Cheap to clone.
///
/// ```
/// use std::time::Duration;
/// use keyloom::{Memory, Store, Writer};
/// use keyloom_locking::recipes::Recipes;
/// use keyloom_locking::{LockPath, Locks, Session};
/// use keyloom_tables::Schema;
/// let store = Memory::new();
/// let schema = Schema::open(&store, "shop")?;
/// let locks = Locks::open(&schema, "locks")?;
/// let recipes = Recipes::open(&schema, &locks, "recipes")?;
/// let election = recipes.election(&LockPath::of(["mailer"]))?;
/// let session = Session::begin(&store, &locks, "host 1")?;
///
/// let leadership = election.campaign(&session, b"10.0.0.1", Duration::from_secs(5))?;
/// let leader = election.leader(&store.snapshot()?)?.expect("it was elected");
/// assert_eq!((leader.value.as_slice(), leader.token), (&b"10.0.0.1"[..], leadership.token()));
/// // Commits only if the session is still the leader.
/// leadership.transact(|txn| txn.put(b"mail 1", b"sent"))?;
/// leadership.resign()?;
/// assert!(election.leader(&store.snapshot()?)?.is_none());
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Election {
    pub(super) of: Of,
    pub(super) locks: Locks,
    pub(super) leaders: Table<PathPart, Leader>,
}

impl Election {
    /// Waits until the session is elected, at most for `patience`, and announces the value.
    /// Candidates are elected in the order of their campaigns.
    ///
    /// # Errors
    /// The errors of [`Session::lock_within`].
    pub fn campaign<'s, S: Store + Clone>(
        &self,
        session: &'s Session<S>,
        value: &[u8],
        patience: impl Into<Patience>,
    ) -> Result<Leadership<'s, S>> {
        let guard = session.lock_within(std::slice::from_ref(&self.of.lock), patience)?;
        let leadership = Leadership { election: self.clone(), guard };
        leadership.proclaim(value)?;
        Ok(leadership)
    }

    /// The leader, if there is one.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn leader(&self, reader: &impl Reader) -> Result<Option<Leader>> {
        Ok(self.find(reader)?.map(|(leader, _)| leader))
    }

    /// Waits for a leader that differs from `seen` in its session, its election or its value, at
    /// most for `patience`. `None` if there is no such leader by then.
    ///
    /// If several elections pass between two reads, an observer misses leaders, but not the latest
    /// leader.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn observe(
        &self,
        store: &impl Store,
        seen: Option<&Leader>,
        patience: impl Into<Patience>,
    ) -> Result<Option<Leader>> {
        let (began, patience) = (Instant::now(), patience.into());
        let key = self.leaders.space().pack(&self.of.path);
        loop {
            let snapshot = store.snapshot()?;
            let stored = snapshot.get(&key)?.map(|bytes| bytes.to_vec());
            let leader = self.leader(&snapshot)?;
            drop(snapshot);
            let left = patience.left(began);
            if leader.is_some() && leader.as_ref() != seen {
                return Ok(leader);
            }
            if left.is_zero() {
                return Ok(None);
            }
            patience.wait(store, &key, stored.as_deref(), left.min(LONGEST_SLEEP))?;
        }
    }

    /// The stored leader and its grant, if the leader holds the lock.
    fn find(&self, reader: &impl Reader) -> Result<Option<(Leader, Grant)>> {
        let Some(leader) = self.leaders.get(reader, &self.of.path)? else { return Ok(None) };
        let Leader { session, ticket, token, .. } = leader;
        let grant = Grant { session, ticket, token };
        let held = self.locks.requests.get(reader, &(session, ticket))?;
        let is_held = held.is_some_and(|request| request.token == token);
        let owner = self.locks.sessions.get(reader, &session)?;
        let now = self.locks.clock.now()?;
        let is_alive = owner.is_some_and(|owner| now < owner.dead_at());
        Ok((is_held && is_alive).then_some((leader, grant)))
    }
}

/// Proof that the session is the leader. If the value is dropped, the session resigns, as a dropped
/// [`Guard`] releases its locks.
#[must_use = "a leadership that is dropped is resigned"]
pub struct Leadership<'s, S: Store + Clone> {
    election: Election,
    guard: Guard<'s, S>,
}

impl<S: Store + Clone> fmt::Debug for Leadership<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership").field("guard", &self.guard).finish_non_exhaustive()
    }
}

impl<S: Store + Clone> Leadership<'_, S> {
    /// The fencing token: greater than the tokens of all earlier leaders.
    pub fn token(&self) -> u64 {
        self.guard.token()
    }

    /// [`Store::transact`] as the leader: commits only if the session is still the leader.
    ///
    /// # Errors
    /// [`LockError::Lost`]; the errors of `body` and of [`Store::transact`].
    pub fn transact<T>(&self, body: impl FnMut(&mut S::Transaction<'_>) -> Result<T>) -> Result<T> {
        self.guard.transact(body)
    }

    /// Announces another value.
    ///
    /// # Errors
    /// [`LockError::Lost`]; any error of the store.
    pub fn proclaim(&self, value: &[u8]) -> Result<()> {
        let Grant { session, ticket, token, .. } = *self.guard.grant();
        let Election { leaders, of, .. } = &self.election;
        let leader = Leader { session, ticket, token, value: value.to_vec() };
        self.transact(|txn| leaders.put(txn, &of.path, &leader))
    }

    /// Resigns: removes the value, and lets the next candidate lead. Costs two commits.
    ///
    /// # Errors
    /// [`LockError::Lost`]; any error of the store.
    pub fn resign(self) -> Result<()> {
        let Election { leaders, of, .. } = &self.election;
        self.transact(|txn| leaders.delete(txn, &of.path))?;
        self.guard.release()
    }
}
