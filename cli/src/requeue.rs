//! `keyloom queues --requeue`: dead letters wait again.

use keyloom::value::Codec;
use keyloom::{AnyStore, KeyBuf, Store};
use keyloom_locking::WorkQueue;
use keyloom_locking::queue::{JobId, JobState};
use keyloom_tables::Schema;
use keyloom_tables::schema::{State, Step, TableInfo};
use serde_json::json;

use crate::failure::{Failure, Outcome, Result};
use crate::output::{Output, grouped};
use crate::payload::{Json, MessagePack, Payload, Postcard, Raw, Upgrading, set_shape};
use crate::selection::one_key;
use crate::shown;

/// The jobs of one transaction: some stores refuse a transaction with more keys.
const MOST_JOBS: usize = 30;

/// A queue of a schema.
#[derive(Clone, Copy, Debug)]
pub struct Place<'p> {
    /// The name of the schema.
    pub schema: &'p str,
    /// The name of the queue.
    pub queue: &'p str,
}

/// Requeues the dead letter `wanted`, or all with `all`.
pub fn requeue(
    store: &AnyStore,
    place: Place<'_>,
    wanted: &str,
    out: &mut Output,
) -> Result<Outcome> {
    let wanted = if wanted == "all" { None } else { Some(job_id(wanted)?) };
    let payloads = payloads(store, place)?;
    let requeued = match &*payloads.definition.codec {
        "Postcard" => run::<Postcard>(store, place, wanted)?,
        "MessagePack" => run::<MessagePack>(store, place, wanted)?,
        "Json" => run::<Json>(store, place, wanted)?,
        "Raw" => run::<Raw>(store, place, wanted)?,
        "Upgrading<Postcard>" => run::<Upgrading<Postcard>>(store, place, wanted)?,
        "Upgrading<MessagePack>" => run::<Upgrading<MessagePack>>(store, place, wanted)?,
        "Upgrading<Json>" => run::<Upgrading<Json>>(store, place, wanted)?,
        other => {
            let other = other.escape_debug();
            return Err(by_program(place, &format!("its payloads have the codec {other}")));
        }
    };
    let Place { schema, queue } = place;
    out.either(
        || json!({"schema": schema, "queue": queue, "requeued": requeued}),
        || {
            let jobs = if requeued == 1 { "job" } else { "jobs" };
            format!("requeued {} {jobs} of {}", grouped(requeued), queue.escape_debug())
        },
    )?;
    Ok(Outcome::Fine)
}

fn job_id(text: &str) -> Result<JobId> {
    let packed: KeyBuf = one_key(text)?;
    keyloom::unpack(&packed).map_err(|_| {
        let why = "is not the id of a job; `keyloom queues NAME --state dead` lists the ids";
        Failure::new(format!("{text:?} {why}"))
    })
}

/// The table of the payloads.
fn payloads(store: &AnyStore, place: Place<'_>) -> Result<TableInfo> {
    let name = format!("{}.payloads", place.queue);
    let tables = Schema::open_existing(store, place.schema)?.tables()?;
    let found = tables.into_iter().find(|table| table.name == name);
    let payloads = found.ok_or_else(|| by_program(place, "it has no table of payloads"))?;
    set_shape(&payloads.definition);
    Ok(payloads)
}

fn by_program(place: Place<'_>, why: &str) -> Failure {
    Failure::new(format!(
        "the queue {:?} cannot be changed without its program: {why}; call `WorkQueue::requeue` in the program",
        place.queue
    ))
}

fn run<C: Codec<Payload>>(
    store: &AnyStore,
    place: Place<'_>,
    wanted: Option<JobId>,
) -> Result<u64> {
    let queue = opened::<C>(store, place)?;
    let ids = match wanted {
        Some(id) => vec![require(store, &queue, id)?],
        None => dead(store, &queue)?,
    };
    let mut requeued = 0;
    for some in ids.chunks(MOST_JOBS) {
        requeued += store.transact(|txn| {
            let mut done = 0;
            for id in some {
                // Another program may have requeued or deleted the job meanwhile.
                let job = queue.jobs().get(txn, id)?;
                if job.is_some_and(|job| matches!(job.state, JobState::Dead { .. })) {
                    queue.requeue(txn, *id)?;
                    done += 1;
                }
            }
            Ok(done)
        })?;
    }
    Ok(requeued)
}

/// Opens the queue, if this changes nothing in its schema and the tool can write its jobs.
fn opened<C: Codec<Payload>>(store: &AnyStore, place: Place<'_>) -> Result<WorkQueue<Payload, C>> {
    let Place { schema, queue } = place;
    let open = |schema: &Schema<'_, AnyStore>| {
        WorkQueue::<Payload, C>::open_with(schema, queue, Default::default())
    };
    let dry = Schema::dry_run(store, schema)?;
    open(&dry)?;
    if let Some(step) = dry.plan()?.steps.iter().find(|step| !is_left(step)) {
        return Err(by_program(place, &step.to_string()));
    }
    Ok(open(&Schema::open(store, schema)?)?)
}

/// Whether the step neither changes the schema nor hinders the writes of the command.
fn is_left(step: &Step) -> bool {
    match step {
        Step::UndeclaredTable { .. } | Step::Migrate { .. } => true,
        Step::UndeclaredDerived { state, .. } => *state == State::Disabled,
        _ => false,
    }
}

/// The id, if it is that of a dead letter.
fn require<C: Codec<Payload>>(
    store: &AnyStore,
    queue: &WorkQueue<Payload, C>,
    id: JobId,
) -> Result<JobId> {
    let refused = |why: &str| {
        let id = shown::key(&keyloom::pack(&id));
        Err(Failure::new(format!("the job {id} cannot be requeued: {why}")))
    };
    let snapshot = store.snapshot()?;
    match queue.jobs().get(&snapshot, &id)?.map(|job| job.state) {
        None => refused("there is no such job; `keyloom queues NAME --state dead` lists the ids"),
        Some(JobState::Waiting { .. }) => refused("it waits already"),
        Some(JobState::Leased { .. }) => {
            refused("a consumer has it; wait for the end of its lease")
        }
        Some(JobState::Dead { .. }) => match queue.get(&snapshot, id)? {
            None => refused("it has no payload; call `WorkQueue::repair` in its program"),
            Some(_) => Ok(id),
        },
    }
}

/// The ids of all dead letters with a payload.
fn dead<C: Codec<Payload>>(store: &AnyStore, queue: &WorkQueue<Payload, C>) -> Result<Vec<JobId>> {
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let page = queue.dead_letters(&store.snapshot()?, None, 1_000, after.as_ref())?;
        ids.extend(page.items.into_iter().map(|(id, _)| id));
        after = page.next;
        if after.is_none() {
            return Ok(ids);
        }
    }
}
