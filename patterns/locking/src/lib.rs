//! Locks of keyloom: how does work that spans transactions, processes, machines and human time stay
//! correct?
//!
//! **Where one transaction suffices, no lock is needed.** A [transaction](keyloom::Store::transact)
//! reads, decides and writes as if it ran alone; after a conflict the store runs it again. If the
//! decision is made outside of the transaction, for example by a person at a form, a
//! [version](keyloom_tables::versioned) detects that the record has changed. Locks are for the
//! rest: work of many transactions, work with other services, and long work that should not be lost
//! to a conflict at its end.
//!
//! Three questions make locks hard. *When may the lock of a dead process be released?* Its
//! [session](Session) has a lease, which ends if it is not renewed. *What if the process was only
//! slow?* Each lock has a [fencing token](Locks::verify), which a write verifies in its own
//! transaction. *What if the process died in the middle of its work?* The [work] is recorded, and
//! the next holder finishes or undoes it.
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
//! | a lock of one or several documents | one request with a lock of the path of each document |
//! | a tree lock | a lock of the path of a node: intentions on its ancestors are implied |
//! | a lock of a range of names | [`Lock::exclusive_range`] |
//! | a read-write lock | [`Lock::shared`] and [`Lock::exclusive`] |
//! | work that survives its process | [`work`] |
//! | semaphores, elections | [`recipes`] |
//! | a work queue | [`queue`] |
//! | records that expire | [`expiry`] |
//! | a rate limit per client | [`rate_limit`] |
//!
//! # Key layout
//!
//! The locks are stored in tables of a schema, here for locks with the name `locks`.
//!
//! | table or index | key | value |
//! |---|---|---|
//! | `locks_sessions` | session | a [`SessionRecord`]: name, end of the lease |
//! | `locks_requests` | session, ticket | a [`Request`]: the locks, the token, 0 while it waits |
//! | `claims`, an index of `locks_requests` | path, group, kind, beginning of a range, position, (session, ticket) | token, end of a range |
//! | `locks_tokens` | 0 to 64 | the last token issued |
//! | `locks_work` | session, ticket | a [`Work`](work::Work) |
//!
//! Session 7 holds X on `/"a"/"b"` with its request 3, and session 5 waits for that lock. The
//! groups are 0 for held claims, 1 for waiting ones, 2 for ranges. The kinds of claims are 0 to 4
//! for IS, IX, S, SIX and X, 5 and 6 for shared and exclusive ranges:
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
//! M is 2^64 - 1: waiting claims are sorted from the latest ticket to the earliest. So the nearest
//! earlier request of a waiter is the first entry after the waiter's own position.
//!
//! A request reads, on each level, only the kinds that exclude its own: one or two ranges of held
//! claims, and a range of waiting claims for each excluding kind. It reads all levels in one round
//! trip. So thousands of intentions on the root cost another intention nothing, and do not conflict
//! with it. There is one record per owner, never a counter, so the locks of a dead owner can be
//! identified.
//!
//! A waiter needs only one blocker. It reads at most 16 claims of each range. It reads more only if
//! all of these belong to its own session, to ended sessions, or to waiters that it may overtake.
//! So n waiters of one lock form a chain, and the cost of serving all of them is linear in n.
//! Claims on ranges of names are not sorted by ticket: a request reads all of them, so n waiters of
//! one range cost n^2 keys.
//!
//! # Invariants
//!
//! * Granted requests of two sessions never exclude each other.
//! * All claims of a request exist, or none; all are granted, or all wait.
//! * If two requests exclude each other, the earlier one is granted first. There is one exception:
//!   if the earlier request waits for a lock that the session of the later request holds, the later
//!   request may overtake it. Otherwise that session would wait for itself. So a session that
//!   always holds some lock can keep others from locking the root.
//! * An upgrade verifies the old lock in the transaction that replaces it: data that was read under
//!   the old lock is still current under the new one.
//! * The token of a lock is greater than the tokens of all earlier locks that exclude it.
//! * A lock with unfinished [work] is not granted to another session before the work is finished.
//! * A live session does not keep a lock that its program gave up: a failed release is retried, and
//!   unfinished work under a dropped guard can be taken over.
//!
//! # Time
//!
//! The [`Clock`] only decides when a lease has ended. Clocks of two programs may differ by the
//! [grace period](LeaseOptions::grace). If the clocks differ by more, a lock may be taken from a
//! holder that is alive. The next verified write of that holder then fails, because tokens do not
//! depend on a clock.
//!
//! A session never excludes itself: give each thread of work a session of its own. A waiting
//! request is granted by its own [`poll`](Locks::poll). So a program that does not use a
//! [`Session`] must poll the request or [withdraw](Locks::withdraw) it. After a
//! [deadlock](LockError::Deadlock), the program must withdraw the request. If the outcome of the
//! commit of a request is unknown, a [`Session`] withdraws the request.
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
//! | [`request_upgrade`](Locks::request_upgrade), free | as for a lock and a release, and 1 get |
//! | a lock that is not free | the same, regardless of the number of waiters; at most 16 claims of each range; 2 gets for each holder among these claims and for the nearest waiter of each mode, in two round trips; a range of the requests of the session |
//! | the search for a deadlock | at most 7 ranges per level of the other requests of the session; if a session waits for one of these requests, the same for each session in the chain, at most 1,000 sessions |
//! | [`poll`](Locks::poll) | 1 get, and the cost of a lock; if granted, 2 (d + 1) + 2 keys written |
//! | [`renew`](Locks::renew) | 1 get, 1 key written |
//! | [`Session::lock`], waiting | one wait and one [`poll`](Locks::poll) per change of the blocking request; without a change, a poll after 1 s, then after pauses that double up to 8 s |
//!
//! On a remote store, a lock costs one round trip and a commit, and a release costs the same. A
//! lock of the root costs one more round trip.
//!
//! A search for a deadlock follows at most 16 holders of each range and the nearest waiter of each
//! mode. A cycle through another holder or waiter is found when these have left.
//!
//! A waiting [`Session`] waits for a [change](keyloom::Store::wait_for_change) of the request that
//! blocks it. A store that can notify wakes the session; other stores are polled.
//!
//! # When not to use it
//!
//! * When one transaction suffices: it needs no lease, no token and no cleanup.
//! * To protect another service that does not check [tokens](Guard::token): a paused holder may
//!   still write there.
//! * For locks that change thousands of times a second on a remote store: each lock costs two
//!   commits.
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
mod patience;
pub mod queue;
pub mod rate_limit;
pub mod recipes;
mod records;
mod request;
mod session;
mod stop;
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
pub use patience::Patience;
pub use queue::WorkQueue;
pub use rate_limit::RateLimit;
pub use records::{Request, SessionRecord};
pub use request::{Grant, Outcome};
pub use session::Session;
pub use stop::Stop;
