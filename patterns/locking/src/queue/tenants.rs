//! The top level: which tenants may have jobs to deliver.
//!
//! A tenant is *active* if it may have a job to deliver now, *sleeping* if it has no job before a
//! known time, and absent if it has no job at all. An enqueue reads the state of the tenant. It
//! seldom conflicts, since the state changes rarely: deliveries and enqueues in an active tenant do
//! not write it.

use keyloom::value::Postcard;
use keyloom::{Error, Reader, Result, Store, Writer};
use keyloom_kit::derived::unless_undecodable;
use keyloom_kit::within;
use keyloom_tables::index::Found;
use keyloom_tables::{Attached, Index, Schema, Table, entry};
use serde::{Deserialize, Serialize};

use super::random::random;

/// The state of a tenant with jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Tenant {
    /// The tenant may have a job to deliver.
    Active {
        since: u64,
        /// The position in the round of all active tenants, drawn at random.
        position: u64,
    },
    /// No job can be delivered before this time.
    Sleeping { until: u64 },
}

const ACTIVE: u8 = 0;
const SLEEPING: u8 = 1;

impl Tenant {
    /// The state of a tenant whose job can be delivered from `at` on.
    fn with_job(at: u64, now: u64) -> Self {
        match at <= now {
            true => Self::Active { since: now, position: random() },
            false => Self::Sleeping { until: at },
        }
    }

    /// Whether the tenant has been active for at least `linger`.
    fn is_active_for(self, now: u64, linger: u64) -> bool {
        matches!(self, Self::Active { since, .. } if since.saturating_add(linger) <= now)
    }

    /// Whether a job that can be delivered from `at` on would be missed or delivered late.
    pub(super) fn misses(self, at: u64) -> bool {
        match self {
            Self::Active { .. } => false,
            Self::Sleeping { until } => until > at,
        }
    }
}

/// The tenants that a delivery visits.
pub(super) struct NextTenants {
    /// Sleeping tenants whose time has come.
    pub(super) due: Vec<String>,
    /// Active tenants, with their positions.
    pub(super) round: Vec<(String, u64)>,
    /// Whether these are all due and active tenants.
    pub(super) is_whole: bool,
}

/// The tenants of a queue.
#[derive(Clone, Debug)]
pub(super) struct Tenants {
    table: Table<String, Tenant>,
    by_turn: Attached<Index<String, Tenant, (u8, u64)>, Postcard>,
}

impl Tenants {
    pub(super) fn open<S: Store>(schema: &Schema<'_, S>, name: &str) -> Result<Self> {
        let table = schema.table::<String, Tenant>(&format!("{name}.tenants"))?;
        let by_turn = schema.index(&table, "by_turn", 1, |_, tenant| match tenant {
            Tenant::Active { position, .. } => entry((ACTIVE, *position)),
            Tenant::Sleeping { until } => entry((SLEEPING, *until)),
        })?;
        Ok(Self { table, by_turn })
    }

    pub(super) fn by_turn(&self) -> &Attached<Index<String, Tenant, (u8, u64)>, Postcard> {
        &self.by_turn
    }

    /// The state of a tenant. A state that does not decode counts as missing: it follows from the
    /// jobs, so the next job or a repair writes it again.
    pub(super) fn get(&self, reader: &impl Reader, tenant: &str) -> Result<Option<Tenant>> {
        Ok(unless_undecodable(self.table.get(reader, tenant))?.flatten())
    }

    pub(super) fn packed(&self, tenant: &str) -> keyloom::KeyBuf {
        self.table.space().pack(tenant)
    }

    /// Makes sure that deliveries find a job of `tenant` that is due from `at` on. Reads one key;
    /// writes only if the tenant is absent or would sleep too long.
    pub(super) fn announce(
        &self,
        txn: &mut impl Writer,
        tenant: &str,
        at: u64,
        now: u64,
    ) -> Result<()> {
        match self.get(txn, tenant)? {
            Some(state) if !state.misses(at) => Ok(()),
            _ => self.table.put(txn, &tenant.into(), &Tenant::with_job(at, now)),
        }
    }

    /// The key of the table's entry in the schema.
    pub(super) fn entry_key(&self) -> Option<&keyloom::KeyBuf> {
        self.table.entry_key()
    }

    /// The tenants of `tenants` that have been active for at least `linger`. Costs 1 get for each.
    pub(super) fn active_for(
        &self,
        reader: &impl Reader,
        tenants: Vec<String>,
        now: u64,
        linger: u64,
    ) -> Result<Vec<String>> {
        if tenants.is_empty() {
            return Ok(tenants);
        }
        // A state that does not decode must not stop the deliveries to other tenants.
        let states = self.table.find_many(reader, &tenants)?;
        let found = tenants.into_iter().zip(states).filter(|(_, state)| match state {
            Ok(Some(state)) => state.is_active_for(now, linger),
            Ok(None) | Err(_) => false,
        });
        Ok(found.map(|(tenant, _)| tenant).collect())
    }

    /// Activates the tenants of `due` whose time has come.
    pub(super) fn wake(&self, txn: &mut impl Writer, due: &[String], now: u64) -> Result<()> {
        let states = self.table.find_many(txn, due)?;
        let woken = due.iter().zip(states).filter_map(|(tenant, state)| match state.ok()?? {
            Tenant::Sleeping { until } if until <= now => {
                Some((tenant.clone(), Tenant::with_job(until, now)))
            }
            _ => None,
        });
        self.table.put_many(txn, woken.collect::<Vec<_>>())
    }

    /// At most `limit` sleeping tenants whose time has come, and at most `limit` active tenants
    /// from the position `from` on, wrapping around once. Costs 1 get and 3 ranges, in 2 round
    /// trips.
    pub(super) fn next(
        &self,
        reader: &impl Reader,
        from: u64,
        limit: usize,
        now: u64,
    ) -> Result<NextTenants> {
        let index = self.by_turn.at(reader)?;
        let ranges = [
            within((SLEEPING, 0_u64)..=(SLEEPING, now)).key_range(index.space()),
            within((ACTIVE, from)..=(ACTIVE, u64::MAX)).key_range(index.space()),
            within((ACTIVE, 0_u64)..(ACTIVE, from)).key_range(index.space()),
        ];
        // One entry beyond the limit shows whether there are more.
        let pages = reader.range_many(&ranges, limit.saturating_add(1))?;
        let are_short = pages.iter().all(|page| page.entries.len() <= limit);
        let mut pages = pages.into_iter().map(|page| {
            let entries = page.entries.into_iter();
            let found = entries.map(|entry| {
                let found = Found::<_, String, (u8, u64)>::new(index.space(), entry)?;
                Ok::<_, Error>((found.record_key()?, found.owned_parts()?.1))
            });
            // A damaged entry is skipped; the check reports it.
            found.filter_map(Result::ok).collect::<Vec<_>>()
        });
        let due = pages.next().unwrap_or_default().into_iter().map(|(tenant, _)| tenant);
        let due = due.take(limit).collect();
        let mut round: Vec<_> = pages.flatten().collect();
        let is_whole = are_short && round.len() <= limit;
        round.truncate(limit);
        Ok(NextTenants { due, round, is_whole })
    }

    /// Puts a tenant without a due job to sleep until its next job, if the tenant has been active
    /// for at least `linger`.
    ///
    /// `next` reads the time of the next job in the same transaction. If a job is enqueued
    /// concurrently, one of the two transactions conflicts: this one read the range in which the
    /// job was added, and the enqueue read the state.
    pub(super) fn settle<W: Writer>(
        &self,
        txn: &mut W,
        tenant: &str,
        now: u64,
        linger: u64,
        next: impl FnOnce(&W) -> Result<Option<u64>>,
    ) -> Result<()> {
        if !self.get(txn, tenant)?.is_some_and(|state| state.is_active_for(now, linger)) {
            return Ok(());
        }
        match next(txn)? {
            Some(at) if at <= now => Ok(()),
            Some(until) => self.table.put(txn, &tenant.into(), &Tenant::Sleeping { until }),
            None => self.table.delete(txn, &tenant.into()).map(drop),
        }
    }
}
