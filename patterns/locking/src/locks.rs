//! The locks of a schema, and their sessions.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use keyloom::{Error, Reader, Result, Store, Writer};
use keyloom_kit::{Inconsistency, Progress, RepairOptions};
use keyloom_tables::schema::Attached;
use keyloom_tables::{Index, Schema, Table};

use crate::claims::{self, ClaimParts};
use crate::clock::millis;
use crate::records::{Request, RequestKey, SessionRecord, Work};
use crate::{Clock, LockError, SystemClock};

/// How long a session lives without a renewal.
///
/// ```
/// use std::time::Duration;
/// use keyloom_locking::LeaseOptions;
/// let options = LeaseOptions { lease: Duration::from_secs(30), ..LeaseOptions::default() };
/// assert_eq!(options.grace, Duration::from_secs(2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseOptions {
    /// How long a lease lasts after a renewal, at least 30 ms. Default: 10 seconds.
    pub lease: Duration,
    /// How long the locks remain after the lease has ended. Must exceed the largest difference
    /// between the clocks of two programs. Default: 2 seconds.
    pub grace: Duration,
}

/// The version of the index of the claims. Version 2 separates held and waiting claims.
const CLAIMS_VERSION: u32 = 2;

/// The shortest lease. A session renews its lease after each third, and a commit to a disk takes
/// some milliseconds: with a shorter lease, one late renewal ends the session.
const SHORTEST_LEASE: Duration = Duration::from_millis(30);

fn refuse_short(lease: Duration) -> Result<()> {
    match lease < SHORTEST_LEASE {
        false => Ok(()),
        true => Err(Error::InvalidArgument {
            what: "the lease of a session",
            value: format!("{lease:?}"),
            why: "a lease of less than 30 ms ends before it is renewed; take one of some seconds",
        }),
    }
}

impl Default for LeaseOptions {
    fn default() -> Self {
        Self { lease: Duration::from_secs(10), grace: Duration::from_secs(2) }
    }
}

/// Locks in a schema; see the [crate](crate). Cheap to clone.
///
/// The methods run within a transaction of the caller, and do not wait. A
/// [`Session`](crate::Session) waits, and renews its lease and releases its locks automatically.
#[derive(Clone)]
pub struct Locks {
    pub(crate) sessions: Table<u64, SessionRecord>,
    pub(crate) requests: Table<RequestKey, Request>,
    pub(crate) claims: Attached<Index<RequestKey, Request, ClaimParts>>,
    pub(crate) tokens: Table<u8, u64>,
    pub(crate) work: Table<RequestKey, Work>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locks").field("requests", &self.requests).finish_non_exhaustive()
    }
}

impl Locks {
    /// Declares the locks `name` in a schema, with the clock of the operating system.
    ///
    /// Adds the tables `NAME_sessions`, `NAME_requests` with the index `claims`, `NAME_tokens` and
    /// `NAME_work`.
    ///
    /// Locks of an earlier version of this crate must be [built](Locks::build) once.
    ///
    /// # Errors
    /// The errors of [`Schema::table`] and [`Schema::index`].
    pub fn open<S: Store>(schema: &Schema<'_, S>, name: &str) -> Result<Self> {
        let requests = schema.table(&format!("{name}_requests"))?;
        let claims =
            schema.index(&requests, "claims", CLAIMS_VERSION, |(_, ticket), request| {
                claims::entries(*ticket, request)
            })?;
        Ok(Self {
            sessions: schema.table(&format!("{name}_sessions"))?,
            requests,
            claims,
            tokens: schema.table(&format!("{name}_tokens"))?,
            work: schema.table(&format!("{name}_work"))?,
            clock: Arc::new(SystemClock),
        })
    }

    /// Builds the index of the claims if the locks come from an earlier version of this crate.
    /// Before the build, requests are refused, because the claims of held locks would not be found.
    /// Stop programs with the earlier version first: after the build they can renew their leases,
    /// but not release their locks. Works in bounded transactions, resumes after a crash, and costs
    /// one get if the index is complete.
    ///
    /// # Errors
    /// The errors of [`Attached::build_with`].
    pub fn build(&self, store: &impl Store) -> Result<()> {
        self.claims.build(store).map(drop)
    }

    /// The same locks with another clock. The clocks of all programs that use the locks must agree
    /// to within the [grace period](LeaseOptions::grace).
    #[must_use]
    pub fn with_clock(self, clock: impl Clock + 'static) -> Self {
        Self { clock: Arc::new(clock), ..self }
    }

    /// Begins a session, the owner of locks, and returns its id. Costs one get and one key written.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a lease of less than 30 ms, which cannot be renewed in time,
    /// or for a name with NUL; the errors of the clock; any error of the store.
    pub fn begin_session(
        &self,
        txn: &mut impl Writer,
        name: &str,
        options: &LeaseOptions,
    ) -> Result<u64> {
        refuse_short(options.lease)?;
        if name.contains('\0') {
            return Err(Error::InvalidArgument {
                what: "the name of a session",
                value: name.to_owned(),
                why: "it contains NUL, which the name of a thread may not; leave the NUL out",
            });
        }
        txn.guarded(|txn| {
            let now = self.clock.now()?;
            let id = self.unused_session(txn)?;
            let [lease, grace] = [options.lease, options.grace].map(millis);
            let expires = now.saturating_add(lease);
            let session = SessionRecord { name: name.to_owned(), started: now, expires, grace };
            self.sessions.put(txn, &id, &session)?;
            Ok(id)
        })
    }

    /// An id that no session has.
    pub(crate) fn unused_session(&self, reader: &impl Reader) -> Result<u64> {
        loop {
            let id = fastrand::u64(1..=i64::MAX.cast_unsigned());
            if self.sessions.get(reader, &id)?.is_none() {
                return Ok(id);
            }
        }
    }

    /// Renews the lease of a session, to `lease` from now. Costs one get and one key written.
    ///
    /// A session whose grace period is over is not renewed: other sessions may hold its locks by
    /// then.
    ///
    /// # Errors
    /// [`LockError::SessionEnded`]; [`Error::InvalidArgument`] for a lease of less than 30 ms; the
    /// errors of the clock; any error of the store.
    pub fn renew(&self, txn: &mut impl Writer, session: u64, lease: Duration) -> Result<()> {
        refuse_short(lease)?;
        txn.guarded(|txn| {
            let (now, mut record) = self.live_session(txn, session)?;
            record.expires = record.expires.max(now.saturating_add(millis(lease)));
            self.sessions.put(txn, &session, &record)
        })
    }

    /// Ends a session: withdraws its waiting requests, releases its locks, and removes its record.
    /// Costs a range, a get for each request, and the writes of each release. Locks with unfinished
    /// work stay, and another program can [take them over](Locks::take_over) at once. Returns the
    /// number of these locks.
    ///
    /// # Errors
    /// Any error of the store. A session that has ended already is not an error.
    pub fn end_session(&self, txn: &mut impl Writer, session: u64) -> Result<usize> {
        txn.guarded(|txn| {
            let mut unfinished = 0;
            for (ticket, _) in self.requests_of(txn, session)? {
                match self.work.get(txn, &(session, ticket))? {
                    Some(_) => unfinished += 1,
                    None => _ = self.requests.delete(txn, &(session, ticket))?,
                }
            }
            self.sessions.delete(txn, &session)?;
            Ok(unfinished)
        })
    }

    /// The time, and the record of a session that has not ended.
    pub(crate) fn live_session(
        &self,
        reader: &impl Reader,
        session: u64,
    ) -> Result<(u64, SessionRecord)> {
        self.expect_live(session, self.sessions.get(reader, &session)?)
    }

    /// The time and the record of the session, if the session has not ended.
    pub(crate) fn expect_live(
        &self,
        session: u64,
        record: Option<SessionRecord>,
    ) -> Result<(u64, SessionRecord)> {
        let now = self.clock.now()?;
        match record {
            Some(record) if now < record.dead_at() => Ok((now, record)),
            _ => Err(LockError::SessionEnded { session }.into()),
        }
    }

    /// The requests of a session with their tickets.
    pub(crate) fn requests_of(
        &self,
        reader: &impl Reader,
        session: u64,
    ) -> Result<Vec<(u64, Request)>> {
        let requests = self.requests.range(reader, session)?;
        requests.map(|found| found.map(|((_, ticket), request)| (ticket, request))).collect()
    }

    /// Reports every inconsistency: requests and claims that contradict each other, locks of two
    /// sessions that are both granted although they exclude each other, tokens that were never
    /// issued, and work without a lock.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn check(&self, reader: &impl Reader) -> Result<Vec<Inconsistency>> {
        let mut faults = self.claims.check(reader)?;
        faults.extend(self.check_holders(reader)?);
        Ok(faults)
    }

    /// Rebuilds the claims, which follow from the requests, in bounded transactions. If two
    /// sessions hold the same lock, a repair cannot decide between them: [revoke](Locks::revoke)
    /// one of the two.
    ///
    /// # Errors
    /// The errors of [`Attached::repair`](keyloom_tables::Attached::repair).
    pub fn repair(&self, store: &impl Store) -> Result<Progress> {
        self.claims.repair(store)
    }

    /// [`repair`](Locks::repair) with options. Calls `progress` after each transaction and stops if
    /// `progress` breaks.
    ///
    /// # Errors
    /// The errors of [`repair`](Locks::repair).
    pub fn repair_with<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        self.claims.repair_with(store, options, progress)
    }
}
