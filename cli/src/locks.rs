//! `keyloom locks`: who holds a lock, and who waits.

use std::collections::BTreeMap;

use clap::Args;
use keyloom::key::elements;
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
        for requests in catalog.parts.iter().filter(|part| part.kind == "table") {
            let name = requests.name.strip_suffix("_requests");
            let sessions =
                name.and_then(|name| catalog.table(&requests.schema, &format!("{name}_sessions")));
            if let (Some(name), Some(sessions)) = (name, sessions) {
                rows.extend(list(out, &snapshot, name, requests, sessions)?);
            }
        }
        if !out.json {
            out.table(
                &["LOCKS", "OWNER", "STATE", "SINCE", "LEASE", "TOKEN", "PATHS"],
                &rows,
                &[5],
            )?;
        }
        Ok(Outcome::Fine)
    }
}

/// The rows of one set of locks.
fn list(
    out: &mut Output,
    snapshot: &AnySnapshot<'_>,
    name: &str,
    requests: &Part,
    sessions: &Part,
) -> Result<Vec<Vec<String>>> {
    let (now, mut owners, mut rows) = (now(), BTreeMap::new(), Vec::new());
    for entry in snapshot.range(sessions.space.self_and_children(), Order::Ascending)? {
        let (key, value) = entry?;
        owners.insert(first_element(&key, sessions), value::record(&value, sessions));
    }
    for entry in snapshot.range(requests.space.self_and_children(), Order::Ascending)? {
        let (key, value) = entry?;
        let Some(request) = value::record(&value, requests) else { continue };
        let owner = owners.get(&first_element(&key, requests)).cloned().flatten();
        let number = |value: &Value, field: &str| value.get(field).and_then(Value::as_u64);
        let token = number(&request, "token").unwrap_or_default();
        let since = number(&request, "since").unwrap_or_default();
        let expires = owner.as_ref().and_then(|owner| number(owner, "expires"));
        let locks = request.get("locks").cloned().unwrap_or_default();
        if out.json {
            let row = json!({
                "schema": requests.schema, "locks": name, "session": owner, "held": token > 0,
                "since": since, "token": token, "paths": locks,
                "lease_ended": expires.is_none_or(|expires| expires < now),
            });
            out.line(&json_safe(&row.to_string()))?;
            continue;
        }
        let named = owner.as_ref().and_then(|owner| owner.get("name")).and_then(Value::as_str);
        let lease = match expires {
            Some(expires) if expires < now => format!("ended {}", ago(expires, now)),
            Some(expires) => format!("ends {}", ago(expires, now)),
            None => "no session".into(),
        };
        let locks: Vec<String> = locks.as_array().into_iter().flatten().map(lock).collect();
        let locks = locks.join(", ");
        rows.push(vec![
            name.escape_debug().to_string(),
            named.unwrap_or("?").escape_debug().to_string(),
            if token > 0 { "held" } else { "waits" }.into(),
            ago(since, now),
            lease,
            token.to_string(),
            cut(&locks, Some(100), locks.len()).0,
        ]);
    }
    Ok(rows)
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

/// The session, which is the first element of the keys of both tables.
fn first_element(key: &[u8], part: &Part) -> Option<String> {
    let rest = key.get(part.space.prefix().len()..)?;
    elements(rest).ok()?.first().map(shown::element)
}
