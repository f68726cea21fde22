//! Errors of locks.

use std::fmt;
use std::time::Duration;

use keyloom::Error;

/// A session that keeps another session's lock from being granted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Blocker {
    /// The id of the session.
    pub session: u64,
    /// The name of the session.
    pub name: String,
    /// The lock or locks of its request.
    pub locks: String,
    /// Whether this session waits too, earlier in the queue.
    pub is_waiting: bool,
    /// Whether the lease of this session has ended while unfinished work keeps its lock: see
    /// [`work`](crate::work).
    pub has_unfinished_work: bool,
    pub(crate) ticket: u64,
    /// When others may take the locks of the session, in milliseconds since 1970.
    pub(crate) dead_at: u64,
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let does = match (self.is_waiting, self.has_unfinished_work) {
            (true, _) => "waits for",
            (_, true) => "has ended with unfinished work under",
            (false, false) => "holds",
        };
        write!(f, "session {:?} {does} {}", self.name, self.locks)
    }
}

/// The blockers of a lock, for messages: the first three.
pub(crate) struct Blockers<'b>(pub(crate) &'b [Blocker]);

impl fmt::Display for Blockers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, blocker) in self.0.iter().take(3).enumerate() {
            write!(f, "{}{blocker}", if i > 0 { ", " } else { "" })?;
        }
        match self.0.len() {
            0..=3 => Ok(()),
            more => write!(f, " and {} more", more - 3),
        }
    }
}

/// An error of locks, returned in an [`Error::Other`]. To match on it, use [`Error::downcast_ref`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// A lock of the request is not valid, or the request has no locks. Correct the request.
    #[error("{lock} cannot be locked: {why}")]
    BadLock {
        /// The lock.
        lock: String,
        /// The rule that the request breaks.
        why: &'static str,
    },
    /// The index of the claims is not built, so a held lock might not be found. Build it once.
    #[error("{what}; stop earlier programs, and call `Locks::build`")]
    NotBuilt {
        /// The index, its table and its state.
        what: String,
    },
    /// Other sessions have the lock, and the caller does not wait. Try again, or wait.
    #[error("{lock} is not free: {}; try again, or wait for it", Blockers(.blockers))]
    Blocked {
        /// The requested locks.
        lock: String,
        /// Sessions that hold or await the locks, as in
        /// [`Outcome::Waiting`](crate::Outcome::Waiting).
        blockers: Vec<Blocker>,
    },
    /// The lock was not granted in time, and the request was withdrawn. Wait longer, or find out
    /// what the blockers do.
    #[error("{lock} was not granted within {waited:?}: {}; wait longer, or end the work of that session", Blockers(.blockers))]
    TimedOut {
        /// The requested locks.
        lock: String,
        /// The time that the caller waited.
        waited: Duration,
        /// Sessions that held or awaited the locks at the last attempt, as in
        /// [`Outcome::Waiting`](crate::Outcome::Waiting).
        blockers: Vec<Blocker>,
    },
    /// The caller requested a [`Stop`](crate::Stop) of the wait, and the request was withdrawn.
    #[error("the wait for {lock} was stopped, and its request was withdrawn: {}", Blockers(.blockers))]
    Stopped {
        /// The requested locks.
        lock: String,
        /// Sessions that held or awaited the locks at the last attempt, as in
        /// [`Outcome::Waiting`](crate::Outcome::Waiting).
        blockers: Vec<Blocker>,
    },
    /// Sessions wait for each other. This session is the victim: its request was withdrawn. Release
    /// the locks of the session, and begin again.
    #[error("{lock} would never be granted: {}, which waits for this session; release the locks of this session and begin again", .cycle.join(", which waits for "))]
    Deadlock {
        /// The requested locks.
        lock: String,
        /// The sessions of the cycle after this one, by name.
        cycle: Vec<String>,
    },
    /// The session no longer holds the lock: its lease ended and another session took the lock, or
    /// the lock was revoked. Write nothing more under the lock. Begin again with a new session.
    #[error(
        "the lock {lock} with the fencing token {token} is lost: its lease ended, or it was revoked; write nothing under it, and begin again with a new session"
    )]
    Lost {
        /// The locks.
        lock: String,
        /// The fencing token.
        token: u64,
    },
    /// The session has ended: its lease was not renewed in time. Open a new session.
    #[error(
        "the session {session} has ended: its lease was not renewed in time; open a new session, and renew it more often or give it a longer lease"
    )]
    SessionEnded {
        /// The id of the session.
        session: u64,
    },
    /// Sessions ended without a release. More of their requests exclude the lock than one request
    /// removes. Remove them with [`Locks::sweep`](crate::Locks::sweep).
    #[error(
        "more than {limit} requests of sessions that have ended exclude {lock}; call `Locks::sweep`, then request again"
    )]
    ManyEnded {
        /// The requested locks.
        lock: String,
        /// How many ended requests one request removes.
        limit: usize,
    },
    /// The session has no such request: it belongs to another session, or was withdrawn.
    #[error(
        "there is no request {ticket} of the session {session}: it was withdrawn, or its session has ended; request the lock again"
    )]
    NoRequest {
        /// The id of the session.
        session: u64,
        /// The ticket of the request.
        ticket: u64,
    },
    /// A downgrade to a mode that the lock does not include. Request the mode instead.
    #[error("the lock {lock} does not include the mode {mode}; request a lock in that mode")]
    NotIncluded {
        /// The lock.
        lock: String,
        /// The requested mode.
        mode: crate::Mode,
    },
    /// The work under the lock belongs to another operation. Resume it with that operation.
    #[error(
        "the work under the lock {lock} is {operation:?}, not {given:?}; resume it with its own operation"
    )]
    OtherOperation {
        /// The lock.
        lock: String,
        /// The operation of the work.
        operation: String,
        /// The given operation.
        given: String,
    },
    /// The record of the work was removed before the work was done. Verify the data under the lock.
    #[error(
        "the work {operation:?} was abandoned before it was done; verify the data under its lock"
    )]
    Abandoned {
        /// The operation.
        operation: String,
    },
    /// The session was ended, but some of its locks have unfinished work. They stay until another
    /// program finishes the work.
    #[error(
        "the session {session:?} has ended, and {count} of its locks have unfinished work; finish it with `Locks::recover`"
    )]
    LeftUnfinished {
        /// The name of the session.
        session: String,
        /// The number of locks with unfinished work.
        count: usize,
    },
    /// The program has no operation of this name. Add it to its
    /// [`Operations`](crate::work::Operations).
    #[error(
        "there is no operation {operation:?} among {known:?}; add it to the operations of this program"
    )]
    UnknownOperation {
        /// The name in the record of the work.
        operation: String,
        /// The known names.
        known: Vec<String>,
    },
    /// A lock with unfinished work cannot be released or revoked, since its data may be half
    /// changed. Finish the work, or abandon it explicitly.
    #[error(
        "the lock {lock} has unfinished work {operation:?}; finish it, or abandon it explicitly"
    )]
    UnfinishedWork {
        /// The lock.
        lock: String,
        /// The operation.
        operation: String,
    },
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Self {
        Self::other(error)
    }
}
