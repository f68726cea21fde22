//! Rate limits: how often may each client do something, counted over all processes?
//!
//! Each key, for example each client, has a number of permits that is refilled at a steady rate:
//! with 60 permits per minute, one each second. A request takes permits in the transaction of its
//! work, or in a separate transaction. If that transaction fails, the permits are not taken. If
//! failed attempts must count, such as wrong passwords, commit the permit before the work begins.
//!
//! ```
//! use std::time::Duration;
//! use keyloom::{Memory, Store};
//! use keyloom_locking::{ManualClock, RateLimit, rate_limit::Take};
//! use keyloom_tables::Schema;
//! let store = Memory::new();
//! let schema = Schema::open(&store, "web")?;
//! let clock = ManualClock::at(0);
//! let mails = RateLimit::<String>::open(&schema, "mails", 2, Duration::from_secs(60))?
//!     .with_clock(clock.clone());
//! let ada = "ada".to_owned();
//! let send = || store.transact(|txn| mails.take(txn, &ada, 1));
//! assert_eq!(send()?, Take::Granted { left: 1 });
//! assert_eq!(send()?, Take::Granted { left: 0 });
//! assert_eq!(send()?, Take::Refused { retry_in: Duration::from_secs(30) });
//! clock.advance(Duration::from_secs(30));
//! assert_eq!(send()?, Take::Granted { left: 0 });
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Key layout
//!
//! | data | key | value |
//! |---|---|---|
//! | a table of the schema | key of the client | the time at which all permits are back, in ns since 1970 |
//!
//! One number suffices: with an interval of 1 s between permits, a client whose permits are all
//! back in 7 s has used 7. A client without a record has all permits.
//!
//! # Invariants
//!
//! * A client that has all permits gets at most `limit` permits at once, and then one per interval.
//!   So within any period as long as `per`, a client gets less than twice `limit`. An exact limit
//!   of a sliding window would take a record for each permit.
//! * A record may be further in the future than `per`, because a clock was ahead or `per` was made
//!   shorter. Such a record counts as if all permits had just been taken. A refusal then writes
//!   that time, so that the client waits for at most `per`. If the refused transaction does not
//!   commit, the record stays; [`reset`](RateLimit::reset) removes it.
//!
//! Processes on several machines compare their clocks with each other's records. If the clocks of
//! two machines differ by d, a client that uses both gets more or fewer permits: at most those of
//! the time d.
//!
//! # Cost
//!
//! | operation | cost |
//! |---|---|
//! | [`take`](RateLimit::take), granted | 2 gets, 1 key written |
//! | `take`, refused | 1 get; with a record further ahead than `per` as for a granted one |
//! | [`left`](RateLimit::left) | 1 get |
//! | [`sweep`](RateLimit::sweep) | reads all records, removes those of clients that have all permits |
//!
//! On a store with conflicts, two requests of one client at the same time conflict. Requests of
//! different clients do not, except on PostgreSQL, where neighbouring keys may conflict.
//!
//! Nothing is derived from the records, so there is nothing to check or to repair: a record that
//! does not decode is an error of its client, which [`reset`](RateLimit::reset) removes, and
//! [`sweep`](RateLimit::sweep) counts such records.
//!
//! # When not to use it
//!
//! For one limit that all requests share, at thousands of requests a second: each of them writes
//! the same key. Divide the limit among the processes, which then count in memory. To limit how
//! many requests run at the same time, use a [semaphore](crate::recipes::Semaphore).
//!
//! # Source
//!
//! The generic cell rate algorithm of the ATM Forum, *Traffic Management Specification* (1996),
//! which is the leaky bucket as one number. It is used by `redis-cell` and others in place of
//! counters per minute, which let a client use two limits around a full minute.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use keyloom::value::Postcard;
use keyloom::{EntryPage, Error, Reader, Result, Store, Writer};
use keyloom_kit::derived::unless_undecodable;
use keyloom_kit::{Progress, RecordKey, RepairOptions, in_batches, page_behind, refuse_foreign};
use keyloom_tables::table::record;
use keyloom_tables::{Schema, Table};

use crate::{Clock, SystemClock};

/// Permits per client and time; see the [module](self). Cheap to clone.
#[derive(Clone)]
pub struct RateLimit<K: RecordKey> {
    /// When all permits of a client are back, in ns since 1970.
    full_at: Table<K, u64>,
    limit: u32,
    /// The time in which one permit comes back, in ns.
    interval: u64,
    clock: Arc<dyn Clock>,
}

/// The answer to a request for permits.
#[must_use = "a refused request must not be served"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// The permits were taken.
    Granted {
        /// The permits that the client can still take now.
        left: u32,
    },
    /// There are not enough permits. None was taken.
    Refused {
        /// The time after which there are enough, in whole milliseconds, if the client takes no
        /// others meanwhile.
        retry_in: Duration,
    },
}

impl<K: RecordKey> RateLimit<K> {
    /// The limit `name` of a schema: at most `limit` permits at once, all of which come back within
    /// `per`, at a steady rate. Adds a table with this name.
    ///
    /// The time for one permit is rounded up to whole nanoseconds. All programs should use the same
    /// numbers. If they are changed, the records stay valid.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if `limit` is 0, if a permit comes back in less than 1 µs, or if
    /// `per` is longer than 10 years; the errors of [`Schema::table`].
    pub fn open<S: Store>(
        schema: &Schema<'_, S>,
        name: &str,
        limit: u32,
        per: Duration,
    ) -> Result<Self> {
        const LONGEST: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);
        let refuse = |why| {
            let value = format!("{limit} per {per:?}");
            Err(Error::InvalidArgument { what: "a rate limit", value, why })
        };
        if limit == 0 {
            return refuse("it grants at least 1 permit");
        }
        if per > LONGEST {
            return refuse("the permits come back within 10 years");
        }
        // At most 3.2e17, so no sum below overflows. Rounded up: a client never gets more.
        let interval = per.as_nanos().div_ceil(u128::from(limit)) as u64;
        if per.as_micros() < u128::from(limit) {
            return refuse("a permit comes back in at least 1 µs");
        }
        Ok(Self { full_at: schema.table(name)?, limit, interval, clock: Arc::new(SystemClock) })
    }

    /// The same limit with another clock.
    #[must_use]
    pub fn with_clock(self, clock: impl Clock + 'static) -> Self {
        Self { clock: Arc::new(clock), ..self }
    }

    /// Takes `permits` of the client `key`, or none if there are not enough.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for more permits than the limit, which would never be granted;
    /// the errors of the clock, of [`Table::get`] and of [`Table::replace`]. A record that does not
    /// decode is an error too: [`reset`](RateLimit::reset) removes it.
    pub fn take(&self, txn: &mut impl Writer, key: &K, permits: u32) -> Result<Take> {
        if permits > self.limit {
            return Err(Error::InvalidArgument {
                what: "the number of permits",
                value: permits.to_string(),
                why: "it is larger than the limit, so it would never be granted",
            });
        }
        txn.guarded(|txn| {
            let now = self.now()?;
            let stored = self.full_at.get(txn, key)?;
            let latest = now + self.all();
            let full_at = self.full_at(stored, now);
            let next = full_at + u64::from(permits) * self.interval;
            if next > latest {
                if stored.is_some_and(|at| at > latest) {
                    self.full_at.replace(txn, key, stored.as_ref(), Some(&full_at))?;
                }
                let wait = Duration::from_nanos(next - latest);
                let retry_in = Duration::from_millis(wait.as_nanos().div_ceil(1_000_000) as u64);
                return Ok(Take::Refused { retry_in });
            }
            if permits > 0 {
                self.full_at.replace(txn, key, stored.as_ref(), Some(&next))?;
            }
            Ok(Take::Granted { left: self.permits_in(latest - next) })
        })
    }

    /// The permits that the client `key` could take now.
    ///
    /// # Errors
    /// The errors of the clock and of [`Table::get`].
    pub fn left(&self, reader: &impl Reader, key: &K) -> Result<u32> {
        let now = self.now()?;
        let full_at = self.full_at(self.full_at.get(reader, key)?, now);
        Ok(self.permits_in(now + self.all() - full_at))
    }

    /// Gives the client `key` all permits back.
    ///
    /// # Errors
    /// The errors of [`Table::delete`].
    pub fn reset(&self, txn: &mut impl Writer, key: &K) -> Result<()> {
        txn.guarded(|txn| self.full_at.delete(txn, key).map(drop))
    }

    /// Removes the records of clients that have all permits, in bounded transactions. Without
    /// sweeps, the table keeps a record for each client that ever took a permit.
    ///
    /// A record that does not decode is counted and left.
    ///
    /// # Errors
    /// The errors of the clock; any error of the store.
    pub fn sweep(&self, store: &impl Store) -> Result<Progress> {
        self.sweep_with(store, &RepairOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// [`sweep`](RateLimit::sweep) with options. Calls `progress` after each transaction and stops
    /// if `progress` breaks. The next sweep removes the rest, with or without the position.
    ///
    /// # Errors
    /// The errors of [`sweep`](RateLimit::sweep); [`Error::InvalidArgument`] for a position of
    /// other data.
    pub fn sweep_with<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        in_batches(store, options, progress, |txn, batch, done| {
            txn.guarded(|txn| self.sweep_batch(txn, batch, done))
        })
    }

    fn sweep_batch(&self, txn: &mut impl Writer, batch: usize, done: &mut Progress) -> Result<()> {
        let (space, now) = (self.full_at.space(), self.now()?);
        refuse_foreign(space, done.position.last.as_deref())?;
        // This read is only a hint: the deletion reads each record again, and that read is checked
        // for conflicts. If this read were checked, a client who takes its first permit would
        // conflict with the sweep.
        let full = txn.snapshot_read(|txn| {
            let EntryPage { entries, last } =
                page_behind(done.position.last.as_deref(), txn, space, batch)?;
            done.position.last = last;
            done.entries += entries.len() as u64;
            let mut full: Vec<K> = Vec::new();
            for entry in entries {
                match unless_undecodable(record::<_, K, u64, Postcard>(space, entry))? {
                    Some((key, full_at)) if full_at <= now => full.push(key),
                    Some(_) => {}
                    None => done.undecodable += 1,
                }
            }
            Ok(full)
        })?;
        done.removed += self.full_at.delete_many(txn, &full)? as u64;
        done.finished = done.position.last.is_none();
        Ok(())
    }

    /// When all permits of a client with this record are back: now, if they are.
    fn full_at(&self, stored: Option<u64>, now: u64) -> u64 {
        stored.unwrap_or(now).clamp(now, now + self.all())
    }

    /// The time in which all permits come back, in ns.
    fn all(&self) -> u64 {
        self.interval * u64::from(self.limit)
    }

    fn permits_in(&self, nanos: u64) -> u32 {
        (nanos / self.interval) as u32
    }

    /// The time now, in ns.
    fn now(&self) -> Result<u64> {
        // A clock beyond the year 2500 counts as that year, so that the sums do not overflow.
        const LATEST_MS: u64 = 530 * 366 * 24 * 60 * 60 * 1_000;
        Ok(self.clock.now()?.min(LATEST_MS) * 1_000_000)
    }
}

impl<K: RecordKey> fmt::Debug for RateLimit<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit")
            .field("full_at", &self.full_at)
            .field("limit", &self.limit)
            .field("interval", &Duration::from_nanos(self.interval))
            .finish_non_exhaustive()
    }
}
