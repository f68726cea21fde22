//! Rate limits: how often may each client do something, counted over all processes?
//!
//! Each client, or whatever the key names, has a number of permits that is refilled at a steady
//! rate: with 60 permits per minute, one each second. A request takes permits in the transaction of
//! its work. If that transaction fails, the permits are not taken.
//!
//! ```
//! use std::time::Duration;
//! use keyloom::{Memory, Store};
//! use keyloom_locking::{ManualClock, RateLimit, rate_limit::Take};
//! use keyloom_tables::Schema;
//! let store = Memory::new();
//! let schema = Schema::open(&store, "web")?;
//! let clock = ManualClock::at(0);
//! let logins = RateLimit::<String>::open(&schema, "logins", 2, Duration::from_secs(60))?
//!     .with_clock(clock.clone());
//! let ada = "ada".to_owned();
//! let log_in = || store.transact(|txn| logins.take(txn, &ada, 1));
//! assert_eq!(log_in()?, Take::Granted { left: 1 });
//! assert_eq!(log_in()?, Take::Granted { left: 0 });
//! assert_eq!(log_in()?, Take::Refused { retry_in: Duration::from_secs(30) });
//! clock.advance(Duration::from_secs(30));
//! assert_eq!(log_in()?, Take::Granted { left: 0 });
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Key layout
//!
//! | data | key | value |
//! |---|---|---|
//! | a table of the schema | key of the client | the time at which all permits are back, in µs since 1970 |
//!
//! One number suffices: with an interval of 1 s between permits, a client whose permits are all
//! back in 7 s has used 7. A client without a record has all permits.
//!
//! # Invariants
//!
//! * From a time when all permits are there, a client gets at most `limit` permits at once, and
//!   then one per interval. So within any period as long as `per`, a client gets less than twice
//!   `limit`. An exact limit of a sliding window would take a record for each permit.
//! * No record refuses a client for longer than twice `per`. A record that is further ahead, as of
//!   a wrong clock or from before `per` was made shorter, counts as absent.
//!
//! Processes on several machines compare their clocks with each other's records. A client that uses
//! two machines whose clocks differ by d, which must be less than `per`, gets permits for the time
//! d more or less.
//!
//! # Cost
//!
//! | operation | cost |
//! |---|---|
//! | [`take`](RateLimit::take), granted | 2 gets, 1 key written |
//! | `take`, refused | 1 get |
//! | [`left`](RateLimit::left) | 1 get |
//! | [`sweep`](RateLimit::sweep) | reads all records, removes those of clients that have all permits |
//!
//! On a store with conflicts, two requests of one client at the same time conflict, and requests of
//! different clients do not.
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
    /// When all permits of a client are back, in µs since 1970.
    full_at: Table<K, u64>,
    limit: u32,
    /// The time in which one permit comes back, in µs.
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
        /// The time after which there are enough, if the client takes no others meanwhile.
        retry_in: Duration,
    },
}

impl<K: RecordKey> RateLimit<K> {
    /// The limit `name` of a schema: at most `limit` permits at once, all of which come back within
    /// `per`, at a steady rate. Adds a table with this name.
    ///
    /// All programs should use the same numbers. If they are changed, the records stay valid.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if `limit` is 0, or if a permit comes back in less than 1 µs or
    /// later than in 100 years; the errors of [`Schema::table`].
    pub fn open<S: Store>(
        schema: &Schema<'_, S>,
        name: &str,
        limit: u32,
        per: Duration,
    ) -> Result<Self> {
        const LONGEST: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);
        let refuse = |why| {
            let value = format!("{limit} per {per:?}");
            Err(Error::InvalidArgument { what: "a rate limit", value, why })
        };
        if limit == 0 {
            return refuse("it grants at least 1 permit");
        }
        if per > LONGEST {
            return refuse("the permits come back within 100 years");
        }
        // At most 3.2e15, so no sum below overflows. Rounded up: a client never gets more.
        let interval = per.as_micros().div_ceil(u128::from(limit)) as u64;
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
            let next = self.full_at(stored, now) + u64::from(permits) * self.interval;
            let latest = now + self.all();
            if next > latest {
                return Ok(Take::Refused { retry_in: Duration::from_micros(next - latest) });
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
        Ok(self.permits_in((now + self.all()).saturating_sub(full_at)))
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
        // A hint: the deletion reads each record again, and that read is checked. If this one were,
        // a client who takes its first permit would conflict with the sweep.
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
        // A refused request writes nothing, so a record far ahead would refuse for ever.
        let stored = stored.filter(|at| *at <= now + 2 * self.all());
        stored.unwrap_or(now).max(now)
    }

    /// The time in which all permits come back, in µs.
    fn all(&self) -> u64 {
        self.interval * u64::from(self.limit)
    }

    fn permits_in(&self, micros: u64) -> u32 {
        (micros / self.interval) as u32
    }

    /// The time now, in µs.
    fn now(&self) -> Result<u64> {
        // A clock beyond the year 292,000 counts as that year, so that the sums do not overflow.
        Ok(self.clock.now()?.min(u64::MAX / 2_000) * 1_000)
    }
}

impl<K: RecordKey> fmt::Debug for RateLimit<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit")
            .field("full_at", &self.full_at)
            .field("limit", &self.limit)
            .field("interval", &Duration::from_micros(self.interval))
            .finish_non_exhaustive()
    }
}
