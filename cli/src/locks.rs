//! `keyloom locks`: who holds a lock, and who waits.

use std::collections::BTreeMap;

use clap::Args;
use keyloom::key::{elements, pack};
use keyloom::{AnySnapshot, Order, Reader, Store};
use serde_json::{Value, json};

use crate::address::{Access, open};
use crate::catalog::{Catalog, Part};
use crate::failure::{Outcome, Result};
use crate::output::Output;
use crate::queues::{ago, now};
use crate::shown::{self, cut, json_safe};
use crate::value;

/// Lists locks that are held and requests that wait, with the leases of their sessions.
///
/// A session renews its lease while its program runs, so a lock with a live lease does not go free
/// by itself: end the program of its owner, which may run on another machine, and wait for the end
/// of the lease and a grace period. The locks of a session whose lease has ended then go to the
/// next request. The name of an owner is chosen by its program.
#[derive(Debug, Args)]
pub struct Locks {
    /// The store: lmdb:DIRECTORY, redb:FILE, fjall:DIRECTORY, …
    pub address: String,
}

impl Locks {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let store = open(&self.address, Access::Read)?;
        let catalog = Catalog::read(&store);
        let snapshot = store.snapshot()?;
        let mut rows = Vec::new();
        for set in sets(&catalog) {
            for request in set.requests(&snapshot)? {
                if out.json {
                    out.line(&json_safe(&request?.object().to_string()))?;
                } else {
                    let request = request?;
                    rows.push((request.number("token") == 0, request.cells()));
                }
            }
        }
        if !out.json {
            // Holders come before those who wait.
            rows.sort_by_key(|(waits, _)| *waits);
            let rows: Vec<_> = rows.into_iter().map(|(_, cells)| cells).collect();
            out.table(
                &["LOCKS", "OWNER", "STATE", "SINCE", "LEASE", "TOKEN", "PATHS"],
                &rows,
                &[5],
            )?;
        }
        Ok(Outcome::Fine)
    }
}

/// A set of locks: the tables of its requests and of its sessions.
pub struct LockSet<'c> {
    /// The name.
    pub name: &'c str,
    /// The table of the requests.
    pub requests: &'c Part,
    sessions: &'c Part,
}

/// The sets of locks of a store.
pub fn sets(catalog: &Catalog) -> impl Iterator<Item = LockSet<'_>> {
    catalog.parts.iter().filter(|part| part.kind == "table").filter_map(|requests| {
        let name = requests.name.strip_suffix("_requests")?;
        let sessions = catalog.table(&requests.schema, &format!("{name}_sessions"))?;
        Some(LockSet { name, requests, sessions })
    })
}

/// A request that holds its locks or waits for them.
pub struct Request<'c> {
    set: &'c LockSet<'c>,
    request: Value,
    owner: Option<Value>,
    now: u64,
}

impl LockSet<'_> {
    /// All requests.
    pub fn requests<'s>(
        &'s self,
        snapshot: &'s AnySnapshot<'_>,
    ) -> Result<impl Iterator<Item = Result<Request<'s>>>> {
        let (now, mut owners) = (now(), Owners::new());
        let entries = snapshot.range(self.requests.space.self_and_children(), Order::Ascending)?;
        Ok(entries.filter_map(move |entry| {
            let read = || {
                let (key, value) = entry?;
                let Some(request) = value::record(&value, self.requests) else { return Ok(None) };
                let owner = self.owner(snapshot, &key, &mut owners)?;
                Ok(Some(Request { set: self, request, owner, now }))
            };
            read().transpose()
        }))
    }

    /// The session of the request with the key `key`.
    fn owner(
        &self,
        snapshot: &AnySnapshot<'_>,
        key: &[u8],
        owners: &mut Owners,
    ) -> Result<Option<Value>> {
        let Some(session) = self.session_key(key) else { return Ok(None) };
        if let Some(known) = owners.get(&session) {
            return Ok(known.clone());
        }
        let value = snapshot.get(&session)?;
        let owner = value.and_then(|value| value::record(&value, self.sessions));
        owners.insert(session, owner.clone());
        Ok(owner)
    }

    /// The key of the session of a request: the first element of the request's key.
    fn session_key(&self, key: &[u8]) -> Option<Vec<u8>> {
        let rest = key.get(self.requests.space.prefix().len()..)?;
        let session = elements(rest).ok()?.into_iter().next()?;
        Some([self.sessions.space.prefix(), &pack(&session)].concat())
    }
}

/// The sessions that were read, by their keys.
type Owners = BTreeMap<Vec<u8>, Option<Value>>;

impl Request<'_> {
    fn number(&self, field: &str) -> u64 {
        self.request.get(field).and_then(Value::as_u64).unwrap_or_default()
    }

    fn of_owner(&self, field: &str) -> Option<&Value> {
        self.owner.as_ref().and_then(|owner| owner.get(field))
    }

    /// Whether the lease of the session has ended.
    fn has_ended(&self) -> bool {
        let expires = self.of_owner("expires").and_then(Value::as_u64);
        expires.is_none_or(|expires| expires < self.now)
    }

    /// The locks, as shown.
    fn locked(&self) -> Vec<String> {
        let locks = self.request.get("locks").and_then(Value::as_array);
        locks.into_iter().flatten().map(lock).collect()
    }

    /// The request as JSON.
    pub fn object(&self) -> Value {
        json!({
            "schema": self.set.requests.schema, "locks": self.set.name, "session": self.owner,
            "held": self.number("token") > 0, "since": self.number("since"),
            "token": self.number("token"), "paths": self.request.get("locks"),
            "locked": self.locked(), "lease_ended": self.has_ended(),
        })
    }

    /// The request as cells of a table: the name, the owner, the state, the time, the lease, the
    /// fencing token, and the locks.
    pub fn cells(&self) -> Vec<String> {
        let (now, token) = (self.now, self.number("token"));
        let lease = match self.of_owner("expires").and_then(Value::as_u64) {
            Some(expires) if expires < now => format!("ended {}", ago(expires, now)),
            Some(expires) => format!("ends {} unless renewed", ago(expires, now)),
            None => "no session".into(),
        };
        let named = self.of_owner("name").and_then(Value::as_str);
        let locks = self.locked().join(", ");
        vec![
            self.set.name.escape_debug().to_string(),
            named.unwrap_or("?").escape_debug().to_string(),
            match token > 0 {
                true if self.has_ended() => "ended",
                true => "held",
                false => "waits",
            }
            .into(),
            ago(self.number("since"), now),
            lease,
            if token > 0 { token.to_string() } else { "-".into() },
            cut(&locks, Some(100), locks.len()).0,
        ]
    }
}

/// A lock: its mode, and its path as a tuple.
fn lock(lock: &Value) -> String {
    let of = |field: &str| lock.get(field).filter(|value| !value.is_null());
    let names = of("path").and_then(|path| path.get("names")).and_then(Value::as_array);
    let bytes: Option<Vec<u8>> = names.and_then(|names| {
        names.iter().map(|byte| byte.as_u64().and_then(|byte| byte.try_into().ok())).collect()
    });
    let Some(bytes) = bytes else { return json_safe(&lock.to_string()) };
    let mode = of("mode").and_then(Value::as_str).unwrap_or_default();
    let range = of("range").map(|range| format!(" range {}", json_safe(&range.to_string())));
    format!("{mode} {}{}", shown::key(&bytes), range.unwrap_or_default())
}
