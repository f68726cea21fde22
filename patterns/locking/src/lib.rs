//! Locks of keyloom: how does work stay correct that spans transactions, processes, machines and
//! human time?
//!
//! **Where one transaction does, no lock is needed.** A [transaction](keyloom::Store::transact)
//! reads, decides and writes as if it were alone; if it was not, the store runs it again. If the
//! decision is made outside, by a person at a form, a [version](keyloom_tables::versioned) finds
//! out that the record has changed. Locks are for the rest: work of many transactions, work with
//! other services, work that takes long and should not be lost to a conflict at its end.
//!
//! Two questions make them hard. *How is it known that the lock of a dead process may be released?*
//! Its [session](Session) has a lease: it ends unless it is renewed. *What if the process was not
//! dead but slow?* Each lock has a [fencing token](Locks::verify), which a write verifies in its own
//! transaction. *What if it died in the middle of its work?* The [work] is recorded, and the
//! next holder finishes it or undoes it.
//!
//! ```
//! use keyloom::{Memory, Reader, Store, Writer};
//! use keyloom_locking::{Lock, LockPath, Locks, Session};
//! use keyloom_tables::Schema;
//! let store = Memory::new();
//! let locks = Locks::open(&Schema::open(&store, "files")?, "locks")?;
//! let session = Session::begin(&store, &locks, "editor 1")?;
//!
//! let chapter = LockPath::of(["book", "chapter 1"]);
//! let guard = session.lock(&[Lock::exclusive(chapter)])?;
//! // Long work, then a write that commits only if the lock is still held.
//! guard.transact(|txn| txn.put(b"chapter 1", b"Down the rabbit hole"))?;
//! guard.release()?;
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! | what | with |
//! |---|---|
//! | a global lock | [`Lock::exclusive`] of [`LockPath::root`] |
//! | a document lock, several at once | a lock of the path of each, in one request |
//! | a tree lock | a lock of the path of a node: intentions on its ancestors are implied |
//! | a lock of a range of names | [`Lock::exclusive_range`] |
//! | a read-write lock | [`Lock::shared`] and [`Lock::exclusive`] |
//! | work that survives its process | [`work`] |
//! | semaphores, elections | [`recipes`] |
//! | a work queue | [`queue`] |
//! | records that expire | [`expiry`] |
//!
//! # Key layout
//!
//! In the tables of a schema, here for locks with the name `locks`.
//!
//! | table or index | key | value |
//! |---|---|---|
//! | `locks_sessions` | session | a [`SessionRecord`]: name, end of the lease |
//! | `locks_requests` | session, ticket | a [`Request`]: the locks, the token, 0 while it waits |
//! | `claims`, an index of it | path, group, kind, beginning of a range, position, (session, ticket) | token, end of a range |
//! | `locks_tokens` | 0 to 64 | the last token given |
//! | `locks_work` | session, ticket | a [`Work`](work::Work) |
//!
//! Session 7 holds X on `/"a"/"b"`, by its request 3, and session 5 waits for it. The groups are 0
//! for held claims, 1 for waiting ones, 2 for ranges. The kinds of claims are 0 to 4 for IS, IX, S,
//! SIX and X, 5 and 6 for shared and exclusive ranges:
//!
//! ```text
//! ("locks_requests", 5, 4)                          ->  X on /"a"/"b", token 0
//! ("locks_requests", 7, 3)                          ->  X on /"a"/"b", token 3
//! ("claims", (),         0, 1, "", 3,     (7, 3))   ->  token 3             IX on the root
//! ("claims", (),         1, 1, "", M - 4, (5, 4))   ->  token 0
//! ("claims", ("a"),      0, 1, "", 3,     (7, 3))   ->  token 3             IX on /"a"
//! ("claims", ("a"),      1, 1, "", M - 4, (5, 4))   ->  token 0
//! ("claims", ("a", "b"), 0, 4, "", 3,     (7, 3))   ->  token 3             X
//! ("claims", ("a", "b"), 1, 4, "", M - 4, (5, 4))   ->  token 0
//! ```
//!
//! M is 2^64 - 1: waiting claims are in the order from the latest ticket to the earliest. So the
//! nearest request before a waiter is the first entry after its own position.
//!
//! A request reads, on each level, only the kinds that exclude its own: one or two ranges of held
//! claims and a range of waiting claims for each such kind, all levels in one round trip. So
//! thousands of intentions on the root cost another intention nothing, and do not conflict with
//! it. There is one record per owner, never a counter: so the locks of a dead owner are known.
//!
//! A waiter needs one reason to wait. It reads at most 16 claims of each range, and more only if
//! all of them are of its own session, of ended sessions, or passed. So n waiters of one lock form
//! a chain, and serving all of them costs n times the same. Claims on ranges of names are not in
//! the order of tickets: a request reads all of them, so n waiters of one range cost n^2 keys.
//!
//! # Invariants
//!
//! * Granted requests of two sessions never exclude each other.
//! * All claims of a request exist, or none; all are granted, or all wait.
//! * Of two requests that exclude each other the earlier one is granted first, unless the session
//!   of the later one holds a lock for which the earlier one waits: it would wait for itself. So a
//!   session that always holds some lock can keep a lock of the root from others.
//! * An upgrade verifies the old lock in the transaction that replaces it: what was read under the
//!   old lock is still current under the new one.
//! * The token of a lock is greater than those of all earlier locks that exclude it.
//! * A lock with unfinished [work] is not given to another session before the work is
//!   finished.
//! * A session that lives keeps no lock that its program gave up: a release that fails is tried
//!   again, and unfinished work under a dropped guard can be taken over.
//!
//! # Time
//!
//! The [`Clock`] decides when a lease has ended, and nothing else. Clocks of two programs may
//! differ by the [grace period](LeaseOptions::grace). If they differ by more, a lock may be taken
//! from a holder that is alive; its next write then fails, because the tokens need no clock.
//!
//! A session never excludes itself: give each thread of work a session of its own. A waiting
//! request is granted by its own [`poll`](Locks::poll), so a program that does not use a
//! [`Session`] polls it or [withdraws](Locks::withdraw) it; after a [deadlock](LockError::Deadlock)
//! it withdraws it. If the outcome of the commit of a request is unknown, a [`Session`] withdraws
//! the request.
//!
//! # Cost
//!
//! d is the number of names of the path. Each operation is one transaction.
//!
//! | operation | cost |
//! |---|---|
//! | [`try_lock`](Locks::try_lock), free | 6 gets; at most 8 ranges per level in one round trip, which read the claims that exclude, and the ranges of each parent that begin before the name; a range of the work of the session; d + 3 keys written |
//! | [`release`](Locks::release) | d + 2 keys written |
//! | [`verify`](Locks::verify) | 1 get |
//! | [`request_upgrade`](Locks::request_upgrade), free | that of a lock and of a release, and 1 get |
//! | a lock that is not free | the same, whatever the number of waiters; at most 16 claims of each range; 2 gets for each holder among them and for the nearest waiter of each mode, in two round trips; the requests of the session |
//! | the search for a deadlock | at most 7 ranges per level of the other requests of the session; only if a session waits for one of them, the same for each session in the chain, at most 1,000 sessions |
//! | [`poll`](Locks::poll) | 1 get, and the cost of a lock; if granted, 2 (d + 1) + 2 keys written |
//! | [`renew`](Locks::renew) | 1 get, 1 key written |
//! | [`Session::lock`], waiting | one wait and one [`poll`](Locks::poll) per change of the request before it, and at least one per second |
//!
//! On a remote store a lock costs one round trip and a commit, and so does a release; a lock of the
//! root costs one more.
//!
//! A search for a deadlock follows at most 16 holders of each range and the nearest waiter of each
//! mode. A cycle through another one is found when these have left.
//!
//! A waiting [`Session`] waits for a [change](keyloom::Store::wait_for_change) of the request in its
//! way. A store that can notify does; others are polled.
//!
//! # When not to use it
//!
//! * When a transaction does: it needs no lease, no token and no cleaning up.
//! * To protect another service that does not check [tokens](Guard::token): a holder that was paused
//!   may still write there.
//! * For locks that change thousands of times a second on a store far away: each is two commits.
//!
//! # Source
//!
//! Modes and intentions: J. Gray, R. Lorie, G. Putzolu, I. Traiger, *Granularity of Locks and
//! Degrees of Consistency in a Shared Data Base* (1976). Leases: C. Gray, D. Cheriton (1989).
//! Fencing: M. Burrows, *The Chubby Lock Service* (2006), there called sequencers; M. Kleppmann,
//! *How to do distributed locking* (2016). Global, document and tree locks: the chapter on
//! concurrency in C. Gormley and Z. Tong, *Elasticsearch: The Definitive Guide* (2015), whose two
//! open questions are answered here.

mod claims;
mod clock;
mod conflicts;
mod deadlock;
mod deferred;
mod error;
pub mod expiry;
mod guard;
mod inspect;
mod locks;
mod mode;
mod path;
pub mod queue;
pub mod recipes;
mod records;
mod request;
mod session;
mod tokens;
pub mod work;

pub use clock::{Clock, ManualClock, SystemClock};
pub use error::{Blocker, LockError};
pub use expiry::Expiry;
pub use guard::Guard;
pub use inspect::RequestInfo;
pub use locks::{LeaseOptions, Locks};
pub use mode::Mode;
pub use path::{Lock, LockPath};
pub use queue::WorkQueue;
pub use records::{Request, SessionRecord};
pub use request::{Grant, Outcome};
pub use session::Session;
