//! Requests: how they are made, granted, withdrawn and released.

use keyloom::{KeyBuf, Reader, Result, Writer};
use keyloom_tables::table::get_with;

use crate::claims::Claims;
use crate::conflicts::{Asker, InTheWay};
use crate::locks::Locks;
use crate::records::{Request, RequestKey, Work, shown};
use crate::{Blocker, Lock, LockError, Mode};

/// Proof that a session holds locks: the key of its request, and the fencing token.
///
/// A grant is valid until the lock is released or lost. Only [`Locks::verify`] can check whether it
/// is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Grant {
    /// The id of the session.
    pub session: u64,
    /// The number of the request.
    pub ticket: u64,
    /// The fencing token: greater than the tokens of all earlier locks that exclude this one.
    pub token: u64,
}

impl Grant {
    /// The request `found` under the key of the grant, if the grant still holds the lock.
    fn expect_held(self, found: Option<Request>) -> Result<Request> {
        match found {
            Some(request) if request.is_granted() && request.token == self.token => Ok(request),
            found => {
                let lock = found.map_or_else(
                    || format!("of the session {}", self.session),
                    |request| request.shown(),
                );
                Err(LockError::Lost { lock, token: self.token }.into())
            }
        }
    }
}

/// The data that a request reads first.
#[derive(Clone, Copy, Debug)]
struct Asked {
    now: u64,
    last_token: u64,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The session holds the locks.
    Granted(Grant),
    /// The request waits in the queue; [poll](Locks::poll) it.
    Waiting {
        /// The number of the request.
        ticket: u64,
        /// Sessions that hold or await the locks, sorted by ticket: at most 16 holders of each
        /// range and, for each mode, the nearest request before this one. The last blocker is the
        /// direct predecessor.
        blockers: Vec<Blocker>,
    },
}

impl Outcome {
    /// The number of the request.
    pub fn ticket(&self) -> u64 {
        match self {
            Self::Granted(grant) => grant.ticket,
            Self::Waiting { ticket, .. } => *ticket,
        }
    }
}

/// How many requests of dead sessions one transaction removes.
// The transaction of the request removes them. With a lower limit, a request fails more often after
// a session with many requests has died. With a higher limit, it conflicts more often.
const MOST_REMOVED: usize = 100;

impl Locks {
    /// Locks all of `locks` for a session, if they are free.
    ///
    /// A session may hold the same lock several times; each grant is released separately. The locks
    /// are taken in one transaction, so a single request cannot cause a deadlock.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_locking::{LeaseOptions, Lock, LockPath, Locks};
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let locks = Locks::open(&Schema::open(&store, "shop")?, "locks")?;
    /// let [ada, bob] = ["ada", "bob"].map(|name| {
    ///     store.transact(|txn| locks.begin_session(txn, name, &LeaseOptions::default()))
    /// });
    /// let (ada, bob) = (ada?, bob?);
    ///
    /// let order = [Lock::exclusive(LockPath::of(["orders"]).child(17))];
    /// let grant = store.transact(|txn| locks.try_lock(txn, ada, &order))?;
    /// let refused = store.transact(|txn| locks.try_lock(txn, bob, &order)).unwrap_err();
    /// assert!(refused.to_string().contains(r#"session "ada" holds X on /"orders"/17"#));
    /// store.transact(|txn| locks.release(txn, grant))?;
    /// assert!(store.transact(|txn| locks.try_lock(txn, bob, &order))?.token > grant.token);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`LockError::Blocked`], [`LockError::BadLock`], [`LockError::SessionEnded`];
    /// [`Error::KeyTooLong`](keyloom::Error::KeyTooLong) for a long path; any error of the store.
    pub fn try_lock(&self, txn: &mut impl Writer, session: u64, locks: &[Lock]) -> Result<Grant> {
        txn.guarded(|txn| {
            let (asked, blockers) = self.prepare(txn, session, u64::MAX, locks)?;
            if !blockers.is_empty() {
                return Err(LockError::Blocked { lock: shown(locks), blockers }.into());
            }
            self.grant(txn, session, None, locks, asked)
        })
    }

    /// Locks all of `locks` for a session, or enters the request in the queue. Earlier requests in
    /// the queue are granted first.
    ///
    /// # Errors
    /// The errors of [`try_lock`](Locks::try_lock), except [`LockError::Blocked`];
    /// [`LockError::Deadlock`], after which the request is not in the queue.
    pub fn request(&self, txn: &mut impl Writer, session: u64, locks: &[Lock]) -> Result<Outcome> {
        txn.guarded(|txn| {
            let (asked, blockers) = self.prepare(txn, session, u64::MAX, locks)?;
            if blockers.is_empty() {
                return self.grant(txn, session, None, locks, asked).map(Outcome::Granted);
            }
            self.refuse_deadlock(txn, session, None, locks, &blockers)?;
            let (_, ticket) = self.next_token_after(txn, asked.last_token, locks)?;
            let request = Request { locks: locks.to_vec(), token: 0, since: asked.now };
            self.add(txn, (session, ticket), &request)?;
            Ok(Outcome::Waiting { ticket, blockers })
        })
    }

    /// Grants a waiting request if it can be granted now. The request of an upgrade is polled with
    /// [`poll_upgrade`](Locks::poll_upgrade).
    ///
    /// # Errors
    /// [`LockError::NoRequest`], [`LockError::Deadlock`], [`LockError::SessionEnded`]; any error
    /// of the store.
    pub fn poll(&self, txn: &mut impl Writer, session: u64, ticket: u64) -> Result<Outcome> {
        txn.guarded(|txn| {
            let Some(request) = self.requests.get(txn, &(session, ticket))? else {
                return Err(LockError::NoRequest { session, ticket }.into());
            };
            if request.is_granted() {
                let token = request.token;
                return Ok(Outcome::Granted(Grant { session, ticket, token }));
            }
            let (asked, blockers) = self.prepare(txn, session, ticket, &request.locks)?;
            if blockers.is_empty() {
                let granted = self.grant(txn, session, Some(ticket), &request.locks, asked);
                return granted.map(Outcome::Granted);
            }
            self.refuse_deadlock(txn, session, Some(ticket), &request.locks, &blockers)?;
            Ok(Outcome::Waiting { ticket, blockers })
        })
    }

    /// Withdraws a waiting request. If the request was granted meanwhile, returns its grant:
    /// release it.
    ///
    /// # Errors
    /// Any error of the store. A missing request is not an error.
    pub fn withdraw(
        &self,
        txn: &mut impl Writer,
        session: u64,
        ticket: u64,
    ) -> Result<Option<Grant>> {
        txn.guarded(|txn| match self.requests.get(txn, &(session, ticket))? {
            Some(request) if request.is_granted() => {
                Ok(Some(Grant { session, ticket, token: request.token }))
            }
            Some(_) => self.requests.delete(txn, &(session, ticket)).map(|_| None),
            None => Ok(None),
        })
    }

    /// Releases a lock.
    ///
    /// # Errors
    /// [`LockError::Lost`], [`LockError::UnfinishedWork`]; any error of the store.
    pub fn release(&self, txn: &mut impl Writer, grant: Grant) -> Result<()> {
        txn.guarded(|txn| {
            self.held_without_work(txn, grant)?;
            self.requests.delete(txn, &(grant.session, grant.ticket)).map(drop)
        })
    }

    /// Verifies in the transaction of a write that the lock is still held. Otherwise the
    /// transaction does not commit. So a holder that was paused for longer than its lease cannot
    /// overwrite the work of the next holder. Costs one get, and does not read the clock.
    ///
    /// # Errors
    /// [`LockError::Lost`]; any error of the store.
    pub fn verify(&self, txn: &mut impl Writer, grant: Grant) -> Result<()> {
        txn.guarded(|txn| self.held(txn, grant).map(drop))
    }

    /// Weakens a lock to `mode`, for example from exclusive to shared, so that other sessions can
    /// share it.
    ///
    /// # Errors
    /// [`LockError::NotIncluded`] if a lock of the request does not include the mode;
    /// [`LockError::UnfinishedWork`], since other sessions would read half-changed data;
    /// [`LockError::Lost`]; any error of the store.
    pub fn downgrade(&self, txn: &mut impl Writer, grant: Grant, mode: Mode) -> Result<()> {
        txn.guarded(|txn| {
            let mut request = self.held_without_work(txn, grant)?;
            for lock in &mut request.locks {
                if !lock.mode.includes(mode) {
                    let lock = lock.to_string();
                    return Err(LockError::NotIncluded { lock, mode }.into());
                }
                lock.mode = mode;
                lock.validate()?;
            }
            self.requests.put(txn, &(grant.session, grant.ticket), &request)
        })
    }

    /// Requests the locks of a grant in a mode that also includes `mode`, for example exclusive
    /// after shared. If these locks are free, the new grant replaces the old grant in this
    /// transaction. Otherwise the old grant stays, and the request waits: [poll the
    /// upgrade](Locks::poll_upgrade). If the locks already include the mode, the grant stays as it
    /// is.
    ///
    /// The transaction that replaces the old grant verifies it. So data that was read under the old
    /// lock is still current under the new one.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_locking::{LeaseOptions, Lock, LockPath, Locks, Mode, Outcome};
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let locks = Locks::open(&Schema::open(&store, "shop")?, "locks")?;
    /// let ada = store.transact(|txn| locks.begin_session(txn, "ada", &LeaseOptions::default()))?;
    /// let shared = [Lock::shared(LockPath::of(["orders"]))];
    /// let old = store.transact(|txn| locks.try_lock(txn, ada, &shared))?;
    /// let upgraded = store.transact(|txn| locks.request_upgrade(txn, old, Mode::Exclusive))?;
    /// let Outcome::Granted(new) = upgraded else { panic!("no other session shares the lock") };
    /// store.transact(|txn| locks.verify(txn, new))?;
    /// assert!(store.transact(|txn| locks.verify(txn, old)).is_err());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`LockError::Lost`] if the old grant is no longer held; [`LockError::UnfinishedWork`]; the
    /// errors of [`request`](Locks::request).
    pub fn request_upgrade(
        &self,
        txn: &mut impl Writer,
        grant: Grant,
        mode: Mode,
    ) -> Result<Outcome> {
        txn.guarded(|txn| {
            let held = self.held(txn, grant)?;
            let stronger = stronger(&held.locks, mode);
            if stronger == held.locks {
                return Ok(Outcome::Granted(grant));
            }
            self.held_without_work(txn, grant)?;
            let outcome = self.request(txn, grant.session, &stronger)?;
            self.replace(txn, grant, outcome)
        })
    }

    /// Grants the waiting request of an [upgrade](Locks::request_upgrade) of `grant` if it can be
    /// granted now. The new grant then replaces the old one in this transaction.
    ///
    /// # Errors
    /// [`LockError::Lost`] if the old grant is no longer held: [withdraw](Locks::withdraw) the
    /// request; [`LockError::UnfinishedWork`]; the errors of [`poll`](Locks::poll).
    pub fn poll_upgrade(
        &self,
        txn: &mut impl Writer,
        grant: Grant,
        ticket: u64,
    ) -> Result<Outcome> {
        txn.guarded(|txn| {
            self.held_without_work(txn, grant)?;
            let outcome = self.poll(txn, grant.session, ticket)?;
            self.replace(txn, grant, outcome)
        })
    }

    /// Removes the request of the verified grant `old`, if `outcome` is a new grant.
    fn replace(&self, txn: &mut impl Writer, old: Grant, outcome: Outcome) -> Result<Outcome> {
        if let Outcome::Granted(_) = outcome {
            self.requests.delete(txn, &(old.session, old.ticket))?;
        }
        Ok(outcome)
    }

    /// Withdraws the request of an upgrade after an error. Returns the new grant if the upgrade was
    /// committed: the old request is then gone, since the same transaction replaced it.
    pub(crate) fn withdraw_upgrade(
        &self,
        txn: &mut impl Writer,
        old: Grant,
        ticket: u64,
    ) -> Result<Option<Grant>> {
        txn.guarded(|txn| {
            let is_old_held = self.requests.get(txn, &(old.session, old.ticket))?.is_some();
            match self.requests.get(txn, &(old.session, ticket))? {
                Some(request) if request.is_granted() => {
                    let token = request.token;
                    let new = Grant { session: old.session, ticket, token };
                    Ok((!is_old_held).then_some(new))
                }
                Some(_) => self.requests.delete(txn, &(old.session, ticket)).map(|_| None),
                None => Ok(None),
            }
        })
    }

    /// The request of a grant, if it is still held.
    pub(crate) fn held(&self, reader: &impl Reader, grant: Grant) -> Result<Request> {
        grant.expect_held(self.requests.get(reader, &(grant.session, grant.ticket))?)
    }

    /// The request of a grant, if it is still held and no work under it is unfinished. Costs one
    /// round trip.
    pub(crate) fn held_without_work(&self, txn: &mut impl Writer, grant: Grant) -> Result<Request> {
        let key = (grant.session, grant.ticket);
        let work = (&self.work, [&key]);
        let written = [self.requests.entry_key()];
        let (request, work) = get_with(txn, (&self.requests, &key), work, &written)?;
        let request = grant.expect_held(request)?;
        match work.into_iter().flatten().next() {
            None => Ok(request),
            Some(Work { operation, .. }) => {
                Err(LockError::UnfinishedWork { lock: request.shown(), operation }.into())
            }
        }
    }

    /// Verifies the session and the locks, and removes blocking requests of dead sessions. Returns
    /// the time and the last token, and the blockers of the locks.
    fn prepare(
        &self,
        txn: &mut impl Writer,
        session: u64,
        ticket: u64,
        locks: &[Lock],
    ) -> Result<(Asked, Vec<Blocker>)> {
        validate(locks)?;
        let now = self.clock.now()?;
        let asker = Asker { session, ticket, locks };
        let also = self.keys_of_request(session, locks)?;
        let found = self.in_the_way(txn, now, asker, MOST_REMOVED, &also)?;
        let (record, last_token) = self.session_and_token(txn, session, locks)?;
        let (now, _) = self.expect_live(session, record)?;
        if found.has_own_work {
            self.refuse_own_work(txn, session, locks)?;
        }
        let InTheWay { blockers, dead, .. } = found;
        for key in dead.iter().take(MOST_REMOVED) {
            self.requests.delete(txn, key)?;
        }
        if dead.len() > MOST_REMOVED {
            return Err(LockError::ManyEnded { lock: shown(locks), limit: MOST_REMOVED }.into());
        }
        Ok((Asked { now, last_token }, blockers))
    }

    fn grant(
        &self,
        txn: &mut impl Writer,
        session: u64,
        ticket: Option<u64>,
        locks: &[Lock],
        asked: Asked,
    ) -> Result<Grant> {
        let (token, new) = self.next_token_after(txn, asked.last_token, locks)?;
        let request = Request { locks: locks.to_vec(), token, since: asked.now };
        let ticket = match ticket {
            None => {
                self.add(txn, (session, new), &request)?;
                new
            }
            Some(ticket) => {
                self.requests.put(txn, &(session, ticket), &request)?;
                ticket
            }
        };
        Ok(Grant { session, ticket, token })
    }

    /// Adds a request. Its key is not read first: no ticket occurs twice. The read would cost a
    /// round trip of its own, since the ticket depends on the counters.
    fn add(&self, txn: &mut impl Writer, key: RequestKey, request: &Request) -> Result<()> {
        self.requests.replace(txn, &key, None, Some(request))
    }

    /// Refuses locks that overlap with a lock of the same session under which work is unfinished:
    /// the data may be half changed.
    fn refuse_own_work(&self, reader: &impl Reader, session: u64, locks: &[Lock]) -> Result<()> {
        let wanted = Claims::of(locks)?;
        for found in self.work.range(reader, session)? {
            let (key, Work { operation, .. }) = found?;
            let Some(request) = self.requests.get(reader, &key)? else { continue };
            if wanted.exclude(&Claims::of(&request.locks)?) {
                let lock = request.shown();
                return Err(LockError::UnfinishedWork { lock, operation }.into());
            }
        }
        Ok(())
    }

    /// The key and the value of the record of a request in the store, to wait for a change of the
    /// record.
    pub(crate) fn stored_request(
        &self,
        reader: &impl Reader,
        key: RequestKey,
    ) -> Result<Option<(KeyBuf, Vec<u8>)>> {
        let stored = self.requests.space().pack(&key);
        Ok(reader.get(&stored)?.map(|bytes| bytes.to_vec()).map(|bytes| (stored, bytes)))
    }
}

/// The locks, in modes that also include `mode`.
pub(crate) fn stronger(locks: &[Lock], mode: Mode) -> Vec<Lock> {
    let all = locks.iter().cloned();
    all.map(|lock| Lock { mode: lock.mode.with(mode), ..lock }).collect()
}

fn validate(locks: &[Lock]) -> Result<()> {
    if locks.is_empty() {
        let lock = "a request of no locks".to_owned();
        return Err(LockError::BadLock { lock, why: "a request has at least one lock" }.into());
    }
    locks.iter().try_for_each(Lock::validate)
}
