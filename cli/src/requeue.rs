//! `keyloom queues --requeue`: dead letters wait again.

use keyloom::value::Codec;
use keyloom::{AnyStore, KeyBuf, Reader, Store};
use keyloom_locking::WorkQueue;
use keyloom_locking::queue::{JobId, JobState, StoredJob};
use keyloom_tables::Schema;
use keyloom_tables::schema::{State, Step, TableInfo};
use serde_json::json;

use crate::failure::{Failure, Outcome, Result};
use crate::output::{Output, grouped, note};
use crate::payload::{Json, MessagePack, Payload, Postcard, Raw, Upgrading, set_shape};
use crate::selection::one_key;
use crate::shown;

/// The largest number of jobs per transaction: some stores refuse a transaction with more keys.
const MOST_JOBS: usize = 30;

/// The jobs of one snapshot.
const PAGE: usize = 1_000;

/// What a command has done with the dead letters.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    requeued: u64,
    /// The dead letters without a payload, which stay.
    left: u64,
}

/// A queue of a schema.
#[derive(Clone, Copy, Debug)]
pub struct Place<'p> {
    /// The name of the schema.
    pub schema: &'p str,
    /// The name of the queue.
    pub queue: &'p str,
}

/// Requeues the dead letter `wanted`, or all dead letters if it is `all`.
pub fn requeue(
    store: &AnyStore,
    place: Place<'_>,
    wanted: &str,
    out: &mut Output,
) -> Result<Outcome> {
    let wanted = if wanted == "all" { None } else { Some(job_id(wanted)?) };
    let payloads = payloads(store, place)?;
    let Done { requeued, left } = match &*payloads.definition.codec {
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
    if left == 0 {
        return Ok(Outcome::Fine);
    }
    note(&format!(
        "dead letters without a payload, which stay: {}; call `WorkQueue::repair` in the program",
        grouped(left)
    ));
    Ok(Outcome::Different)
}

fn job_id(text: &str) -> Result<JobId> {
    let packed: KeyBuf = one_key(text)?;
    keyloom::unpack(&packed).map_err(|_| {
        let why = "is not the id of a job; `keyloom queues NAME --state dead` lists the ids";
        Failure::new(format!("{text:?} {why}"))
    })
}

/// The table of the payloads. Also sets the shape of the payloads for the codecs.
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
) -> Result<Done> {
    let queue = opened::<C>(store, place)?;
    let mut done = Done::default();
    let ran = match wanted {
        Some(id) => require(store, &queue, id).and_then(|id| some(store, &queue, &[id], &mut done)),
        None => all(store, &queue, &mut done),
    };
    match ran {
        Err(failure) if done.requeued > 0 => {
            let requeued = grouped(done.requeued);
            Err(Failure::new(format!("{failure}; {requeued} jobs were requeued")))
        }
        ran => ran.map(|()| done),
    }
}

/// Requeues all dead letters with a payload.
fn all<C: Codec<Payload>>(
    store: &AnyStore,
    queue: &WorkQueue<Payload, C>,
    done: &mut Done,
) -> Result {
    let mut after = None;
    loop {
        let page = queue.jobs().page(&store.snapshot()?, .., PAGE, after.as_ref())?;
        let is_dead = |job: &StoredJob| matches!(job.state, JobState::Dead { .. });
        let dead = page.items.iter().filter(|(_, job)| is_dead(job));
        let ids: Vec<JobId> = dead.map(|(id, _)| *id).collect();
        some(store, queue, &ids, done)?;
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

fn some<C: Codec<Payload>>(
    store: &AnyStore,
    queue: &WorkQueue<Payload, C>,
    ids: &[JobId],
    done: &mut Done,
) -> Result {
    for ids in ids.chunks(MOST_JOBS) {
        *done = store.transact(|txn| {
            let mut done = *done;
            for id in ids {
                // Another program may have requeued or deleted the job meanwhile.
                let job = queue.jobs().get(txn, id)?;
                if !job.is_some_and(|job| matches!(job.state, JobState::Dead { .. })) {
                    continue;
                }
                if txn.get(&queue.payloads().space().pack(id))?.is_none() {
                    done.left += 1;
                    continue;
                }
                queue.requeue(txn, *id)?;
                done.requeued += 1;
            }
            Ok(done)
        })?;
    }
    Ok(())
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

/// The id, if the job is a dead letter with a payload. Otherwise an error with the reason.
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
