//! `keyloom queues`: the jobs of work queues.

use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use keyloom::{AnySnapshot, Order, Reader, Store};
use serde_json::{Value, json};

use crate::address::{Access, open};
use crate::catalog::{Catalog, Part};
use crate::failure::{Failure, Outcome, Result};
use crate::output::{Output, grouped, note};
use crate::requeue::{Place, requeue};
use crate::shown::{self, cut, json_safe};
use crate::style::{Role, paint};
use crate::value;

/// Counts the jobs of each work queue by state, lists those of one state, or requeues dead letters.
#[derive(Debug, Args)]
pub struct Queues {
    /// The store: lmdb:DIRECTORY, redb:FILE, fjall:DIRECTORY, …
    pub address: String,
    /// The name of a queue [default: all]
    pub name: Option<String>,
    /// Lists the jobs of this state
    #[arg(long, value_enum)]
    pub state: Option<State>,
    /// The most jobs to list
    #[arg(long, short = 'n', default_value_t = 50)]
    pub limit: usize,
    /// Returns this dead letter, or all of the queue NAME: the job waits, and its attempts begin
    /// again at 0. Status 1 if dead letters stay, since they have no payload
    #[arg(long, value_name = "ID|all", requires = "name", conflicts_with_all = ["state", "limit"])]
    pub requeue: Option<String>,
    /// Allows --requeue to change the store
    #[arg(long, requires = "requeue")]
    pub write: bool,
}

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum State {
    /// It waits for a consumer
    Waiting,
    /// A consumer has it
    Leased,
    /// Its consumer has it for longer than its lease
    Overdue,
    /// A dead letter: it has failed too often, or its program has given it up
    Dead,
}

impl State {
    const ALL: [Self; 4] = [Self::Waiting, Self::Leased, Self::Overdue, Self::Dead];

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Leased => "leased",
            Self::Overdue => "overdue",
            Self::Dead => "dead",
        }
    }

    /// The state of a stored job, and its time: since when the job is dead, from when it waits, or
    /// until when it is leased.
    pub fn of(job: &Value, now: u64) -> Option<(Self, u64)> {
        let state = job.get("state")?;
        let time = |state: &str, field: &str| job.get("state")?.get(state)?.get(field)?.as_u64();
        if state.get("Dead").is_some() {
            return Some((Self::Dead, time("Dead", "since")?));
        }
        if let Some(from) = time("Waiting", "from") {
            return Some((Self::Waiting, from));
        }
        let until = time("Leased", "until")?;
        Some((if until < now { Self::Overdue } else { Self::Leased }, until))
    }
}

/// Milliseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A time relative to now: `in 20 s`, `7 s ago`.
pub fn ago(time: u64, now: u64) -> String {
    let distance = time.abs_diff(now) / 1_000;
    let text = match distance {
        0..120 => format!("{distance} s"),
        120..7_200 => format!("{} min", distance / 60),
        7_200..172_800 => format!("{} h", distance / 3_600),
        _ => format!("{} days", distance / 86_400),
    };
    if time > now { format!("in {text}") } else { format!("{text} ago") }
}

impl Queues {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        if let Some(wanted) = &self.requeue {
            return self.requeue(wanted, out);
        }
        let store = open(&self.address, Access::Read)?;
        let catalog = Catalog::read(&store);
        let snapshot = store.snapshot()?;
        let (mut rows, mut left) = (Vec::new(), self.limit);
        for (jobs, name) in self.named(&catalog)? {
            match self.state {
                Some(state) => list(out, &snapshot, jobs, name, state, &mut left)?,
                None => rows.push(count(out, &snapshot, jobs, name)?),
            }
        }
        if self.state.is_none() && !out.json {
            let head = ["SCHEMA", "QUEUE", "WAITING", "LEASED", "OVERDUE", "DEAD"];
            out.table(&head, &rows, &[2, 3, 4, 5])?;
        }
        Ok(Outcome::Fine)
    }

    /// The queues with the name in the command, or all queues if the command has no name.
    fn named<'c>(&self, catalog: &'c Catalog) -> Result<Vec<(&'c Part, &'c str)>> {
        let is_named = |jobs: &Part, name: &str| match self.name.as_deref() {
            None => true,
            Some(wanted) => wanted == name || wanted == format!("{}/{name}", jobs.schema),
        };
        let found: Vec<_> = queues(catalog).filter(|(jobs, name)| is_named(jobs, name)).collect();
        match &self.name {
            Some(name) if found.is_empty() => {
                let why = "without a name, `keyloom queues` lists all";
                Err(Failure::new(format!("there is no queue {name:?}; {why}")))
            }
            _ => Ok(found),
        }
    }

    fn requeue(&self, wanted: &str, out: &mut Output) -> Result<Outcome> {
        if !self.write {
            return Err(Failure::new("this changes the store; repeat the command with --write"));
        }
        let store = open(&self.address, Access::Write)?;
        let catalog = Catalog::read(&store);
        match self.named(&catalog)?[..] {
            [(jobs, queue)] => requeue(&store, Place { schema: &jobs.schema, queue }, wanted, out),
            _ => Err(Failure::new("several schemas have this queue; write SCHEMA/QUEUE")),
        }
    }
}

/// Lists the jobs of one state, at most `left`.
fn list(
    out: &mut Output,
    snapshot: &AnySnapshot<'_>,
    jobs: &Part,
    queue: &str,
    wanted: State,
    left: &mut usize,
) -> Result {
    let now = now();
    for entry in snapshot.range(jobs.space.self_and_children(), Order::Ascending)? {
        let (key, value) = entry?;
        let Some(job) = value::record(&value, jobs) else { continue };
        let Some((_, time)) = State::of(&job, now).filter(|(state, _)| *state == wanted) else {
            continue;
        };
        if *left == 0 {
            note("there are more jobs of this state; -n lists more");
            break;
        }
        *left -= 1;
        let of = |field: &str| job.get(field).cloned().unwrap_or_default();
        let id = shown::key(key.get(jobs.space.prefix().len()..).unwrap_or_default());
        let object = || json!({"schema": jobs.schema, "queue": queue, "id": id, "state": wanted.name(), "time": time, "job": job});
        let text = || {
            let error = json_safe(&of("last_error").to_string());
            let (error, _) = cut(&error, Some(100), error.len());
            let tenant = json_safe(&of("tenant").to_string());
            let (state, time) = (wanted.name(), ago(time, now));
            let queue = paint(Role::Name, &queue.escape_debug().to_string());
            format!(
                "{queue} {id} of {tenant}: {state} {time}, {} attempts, error {error}",
                of("attempts")
            )
        };
        out.either(object, text)?;
    }
    Ok(())
}

/// The tables of jobs with the names of their queues.
pub fn queues(catalog: &Catalog) -> impl Iterator<Item = (&Part, &str)> {
    catalog.parts.iter().filter(|part| part.kind == "table").filter_map(|part| {
        let name = part.name.strip_suffix(".jobs")?;
        catalog.table(&part.schema, &format!("{name}.payloads"))?;
        Some((part, name))
    })
}

/// The numbers of jobs of a queue by state, as a row. If the output is JSON, prints the row.
fn count(
    out: &mut Output,
    snapshot: &AnySnapshot<'_>,
    jobs: &Part,
    queue: &str,
) -> Result<Vec<String>> {
    let (now, mut counts, mut unread) = (now(), [0_u64; State::ALL.len()], 0_u64);
    for entry in snapshot.range(jobs.space.self_and_children(), Order::Ascending)? {
        let (_, value) = entry?;
        let state = value::record(&value, jobs).and_then(|job| State::of(&job, now));
        unread += u64::from(state.is_none());
        for (count, one) in counts.iter_mut().zip(State::ALL) {
            *count += u64::from(state.is_some_and(|(state, _)| state == one));
        }
    }
    if unread > 0 {
        note(&format!("{unread} jobs of {queue:?} do not decode; see `keyloom check`"));
    }
    if out.json {
        let [waiting, leased, overdue, dead] = counts;
        let row = json!({
            "schema": jobs.schema, "queue": queue, "waiting": waiting, "leased": leased,
            "overdue": overdue, "dead": dead,
        });
        out.line(&json_safe(&row.to_string()))?;
    }
    let names = [&jobs.schema[..], queue].map(|name| name.escape_debug().to_string());
    Ok(names.into_iter().chain(counts.map(grouped)).collect())
}
