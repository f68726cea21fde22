//! Locks and queues.

use keyloom::{AnySnapshot, Order, Reader, Store};
use serde_json::{Value, json};

use super::params::Params;
use super::site::Site;
use crate::catalog::{Catalog, Part};
use crate::failure::{Failure, Result};
use crate::indexed::{Entry, Joined};
use crate::locks::sets;
use crate::queues::{State, ago, now, queues};
use crate::shown::{self, cut};
use crate::value;

/// The requests that are listed. Each costs two keys: the request and its session.
const MOST_REQUESTS: usize = 40;
/// The jobs of each stored state that are listed. Each costs two keys: an entry of an index, and
/// the job.
const MOST_JOBS: usize = 12;
/// The stored states, as the index by state encodes them.
const STATES: [(&str, u8); 3] = [("waiting", 0), ("leased", 1), ("dead", 2)];

/// The holders of locks, and the requests that wait.
pub fn locks(site: &Site, params: &Params) -> Result<Value> {
    let (catalog, _) = Catalog::with_faults(&site.store);
    let snapshot = site.store.snapshot()?;
    let is_named = |schema: &str, name: &str| format!("{schema}/{name}") == params.name;
    let set = sets(&catalog).find(|set| is_named(&set.requests.schema, set.name));
    let set = set.ok_or_else(|| Failure::new("there are no such locks"))?;
    let (mut rows, mut has_more) = (Vec::new(), false);
    for request in set.requests(&snapshot)? {
        has_more = rows.len() == MOST_REQUESTS;
        if has_more {
            break;
        }
        rows.push(request?.cells());
    }
    Ok(json!({"name": params.name, "requests": rows, "more": has_more}))
}

/// Jobs of each state, the oldest first.
pub fn queue(site: &Site, params: &Params) -> Result<Value> {
    let (catalog, _) = Catalog::with_faults(&site.store);
    let snapshot = site.store.snapshot()?;
    let is_named = |jobs: &Part, name: &str| format!("{}/{name}", jobs.schema) == params.name;
    let found = queues(&catalog).find(|(jobs, name)| is_named(jobs, name));
    let (jobs, _) = found.ok_or_else(|| Failure::new("there is no such queue"))?;
    let index = format!("{}/{}.by_state", jobs.schema, jobs.name);
    let by_state = catalog.require(&index)?;
    let states = STATES.iter().map(|(name, code)| {
        let (jobs, has_more) = of_state(&snapshot, by_state, jobs, *code)?;
        Ok(json!({"state": name, "jobs": jobs, "more": has_more}))
    });
    Ok(json!({"name": params.name, "states": states.collect::<Result<Vec<Value>>>()?}))
}

fn of_state(
    snapshot: &AnySnapshot<'_>,
    by_state: &Part,
    jobs: &Part,
    code: u8,
) -> Result<(Vec<Value>, bool)> {
    let page = snapshot.page(by_state.space.range_of(&code), Order::Ascending, MOST_JOBS)?;
    let entries: Vec<Entry<'_>> =
        page.entries.iter().map(|(key, value)| (&**key, &**value)).collect();
    let now = now();
    let listed =
        Joined::read(snapshot, &by_state.space, jobs, &entries)?.into_iter().filter_map(|one| {
            match one {
                Joined::Record { record, value, .. } => job(jobs, &record, &value, now),
                Joined::NoEntry { .. } | Joined::Dangling { .. } => None,
            }
        });
    Ok((listed.collect(), page.last.is_some()))
}

/// A job, if it decodes.
fn job(jobs: &Part, key: &[u8], value: &[u8], now: u64) -> Option<Value> {
    let job = value::record(value, jobs)?;
    let (state, time) = State::of(&job, now)?;
    let id = shown::key(key.get(jobs.space.prefix().len()..)?);
    let error = job.get("last_error").filter(|error| !error.is_null());
    let error = error.map(|error| error.as_str().map_or_else(|| error.to_string(), str::to_owned));
    let error = error.map(|error| cut(&error, Some(200), error.len()).0);
    Some(json!({
        "id": id, "key_hex": shown::hex(key),
        "state": state.name(), "time": ago(time, now), "tenant": job.get("tenant"),
        "attempts": job.get("attempts"), "error": error,
    }))
}
