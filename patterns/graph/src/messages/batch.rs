//! One batch: reads vertices, computes them on several threads, and collects the writes.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use keyloom::value::{Codec, Postcard};
use keyloom::{KeyBuf, KeyRange, Reader, Result, pack};

use super::aggregate::Aggregate;
use super::checkpoint::{Checkpoint, Layout, Pass, Until};
use super::outbox::{Outbox, Payload};
use super::program::{Global, Vertex, VertexProgram};
use super::reading::{Loaded, Reading, Step};
use super::source::Source;
use super::stored_state::StoredState;
use super::stream::{between, joined};
use crate::VertexId;

/// The number of vertices that are read before they are computed together. This number affects
/// where batches end, so it must not depend on the number of threads.
// A lower number leaves threads idle at the end of a round; a higher one keeps more vertices in
// memory.
const ROUND: usize = 256;

/// A round ends after one eighth of the bytes of a batch, since the messages that it sends are
/// counted only after the round.
const ROUND_PART: usize = 8;

/// The limits of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) vertices: usize,
    /// The bytes of the entries read and the messages sent.
    pub(super) bytes: usize,
    pub(super) vertex_bytes: usize,
    /// The bytes of the states that one transaction writes.
    pub(super) state_bytes: usize,
}

/// The inputs of a batch.
pub(super) struct Job<'r, I: VertexId, E, P: VertexProgram<I, E>> {
    pub(super) source: &'r Source<I, E>,
    pub(super) layout: &'r Layout,
    pub(super) program: &'r P,
    pub(super) at: &'r Checkpoint<P::Aggregate>,
    pub(super) bounds: Bounds,
    pub(super) threads: usize,
}

/// The writes of a batch.
pub(super) struct Batch {
    pub(super) messages: Vec<(KeyBuf, Arc<[u8]>)>,
    pub(super) states: Vec<(KeyBuf, Vec<u8>)>,
    /// The messages that the batch has read.
    pub(super) consumed: Option<KeyRange<'static>>,
    /// The end of the batch, for the checkpoint after a part of the messages is written.
    pub(super) until: Until,
    /// The checkpoint after the batch.
    pub(super) done: Vec<u8>,
    /// The number of vertices computed.
    pub(super) vertices: u64,
}

/// A vertex after it was computed.
struct Outcome<M, A> {
    own: KeyBuf,
    /// The new value of the state; `None` if it is unchanged.
    value: Option<Vec<u8>>,
    is_halted: bool,
    sent: Vec<(Payload<M>, Vec<KeyBuf>)>,
    aggregate: Option<A>,
}

/// The outcomes of a batch so far.
struct Collected<M, A> {
    next: Checkpoint<A>,
    states: Vec<(KeyBuf, Vec<u8>)>,
    state_bytes: usize,
    outbox: Outbox<M>,
    vertices: usize,
    last: Option<KeyBuf>,
}

impl<I, E, P> Job<'_, I, E, P>
where
    I: VertexId,
    E: Send + 'static,
    P: VertexProgram<I, E>,
{
    /// Computes the next batch.
    ///
    /// # Errors
    /// The errors of [`Reading::next`] and of the program.
    pub(super) fn run(&self, reader: &impl Reader) -> Result<Batch> {
        let Self { source, layout, program, at, bounds, .. } = *self;
        let mut reading = Reading::open(reader, source, layout, program, at, bounds.vertex_bytes)?;
        let mut done = Collected {
            next: at.clone(),
            states: Vec::new(),
            state_bytes: 0,
            outbox: Outbox::new(),
            vertices: 0,
            last: None,
        };
        let ends_pass = loop {
            let (round, is_end) = self.read_round(&mut reading, &done)?;
            if !self.collect(self.compute_all(round)?, &mut done) {
                break false;
            }
            done.last = reading.last.clone();
            let bytes = reading.bytes + done.outbox.bytes;
            if is_end || done.vertices >= bounds.vertices || bytes >= bounds.bytes {
                break is_end || reading.is_at_end()?;
            }
        };
        let ends_pass = at.until.as_ref().map_or(ends_pass, |until| until.ends_pass);
        self.finish(done, ends_pass, reading.has_received)
    }

    /// Reads the next vertices. Returns whether they are the last ones.
    fn read_round<R: Reader>(
        &self,
        reading: &mut Reading<'_, I, E, P, R>,
        done: &Collected<P::Message, P::Aggregate>,
    ) -> Result<(Vec<Loaded<I, E, P::Message>>, bool)> {
        let most = ROUND.min(self.bounds.vertices - done.vertices);
        let most_bytes = reading.bytes.saturating_add(self.bounds.bytes / ROUND_PART);
        let mut round = Vec::new();
        while round.len() < most && reading.bytes <= most_bytes {
            match reading.next(most_bytes)? {
                Step::Vertex(vertex) => round.push(vertex),
                Step::Full => break,
                Step::End => return Ok((round, true)),
            }
        }
        Ok((round, false))
    }

    /// Computes vertices on several threads. The outcomes are in the order of the vertices.
    fn compute_all(
        &self,
        vertices: Vec<Loaded<I, E, P::Message>>,
    ) -> Result<Vec<Outcome<P::Message, P::Aggregate>>> {
        let share = vertices.len().div_ceil(self.threads).max(1);
        if share >= vertices.len() {
            return vertices.into_iter().map(|vertex| self.compute(vertex)).collect();
        }
        let mut vertices = vertices.into_iter();
        let outcomes = thread::scope(|scope| {
            let mut threads = Vec::with_capacity(self.threads);
            while vertices.len() > 0 {
                let own: Vec<_> = vertices.by_ref().take(share).collect();
                let compute = || own.into_iter().map(|vertex| self.compute(vertex)).collect();
                threads.push(scope.spawn(compute));
            }
            let join = |thread: thread::ScopedJoinHandle<'_, Result<Vec<_>>>| {
                thread.join().unwrap_or_else(|panic| resume_unwind(panic))
            };
            threads.into_iter().map(join).collect::<Result<Vec<_>>>()
        });
        Ok(outcomes?.into_iter().flatten().collect())
    }

    fn compute(
        &self,
        loaded: Loaded<I, E, P::Message>,
    ) -> Result<Outcome<P::Message, P::Aggregate>> {
        let Loaded { id, own, stored, edges, fingerprint, messages } = loaded;
        let Pass::Superstep(superstep) = self.at.pass else {
            let value = encode(false, fingerprint, &self.program.init(&id, edges.len()))?;
            let (value, sent) = (Some(value), Vec::new());
            return Ok(Outcome { own, value, is_halted: false, sent, aggregate: None });
        };
        let (vertices, aggregated) = (self.at.vertices, &self.at.aggregated);
        let mut vertex = Vertex::<I, E, P> {
            state: Postcard::decode(StoredState::split(&stored)?.state)?,
            id: &id,
            edges: &edges,
            global: Global { superstep, vertices, aggregated },
            sent: Vec::new(),
            aggregate: None,
            is_halted: false,
        };
        self.program.compute(&mut vertex, &messages)?;
        let Vertex { state, sent, aggregate, is_halted, .. } = vertex;
        let combiner = self.program.combiner();
        let sent = sent.into_iter().map(|(message, to)| {
            let to = to.iter().map(|to| pack(&(to,))).collect();
            Ok((Payload::new(message, combiner)?, to))
        });
        let sent = sent.collect::<Result<_>>()?;
        let value = Some(encode(is_halted, fingerprint, &state)?).filter(|new| *new != stored);
        Ok(Outcome { own, value, is_halted, sent, aggregate })
    }

    /// Adds outcomes. Returns whether all of them fit into one transaction. Outcomes that do not
    /// fit are dropped.
    fn collect(
        &self,
        outcomes: Vec<Outcome<P::Message, P::Aggregate>>,
        done: &mut Collected<P::Message, P::Aggregate>,
    ) -> bool {
        for Outcome { own, value, is_halted, sent, aggregate } in outcomes {
            let bytes = value.as_ref().map_or(0, Vec::len);
            if done.vertices > 0 && done.state_bytes + bytes > self.bounds.state_bytes {
                return false;
            }
            done.state_bytes += bytes;
            done.vertices += 1;
            done.next.vertices += u64::from(self.at.pass == Pass::Init);
            done.next.active += u64::from(!is_halted);
            aggregate.into_iter().for_each(|value| done.next.partial.merge(value));
            sent.into_iter().for_each(|(payload, to)| done.outbox.add(&payload, to));
            let key = |value| (joined(self.layout.states.prefix(), &own), value);
            done.states.extend(value.map(key));
            done.last = Some(own);
        }
        true
    }

    fn finish(
        &self,
        done: Collected<P::Message, P::Aggregate>,
        ends_pass: bool,
        has_received: bool,
    ) -> Result<Batch> {
        let Collected { mut next, states, outbox, vertices, last, .. } = done;
        let last = last.map(|last| last.to_vec());
        let (mut messages, mut consumed) = (Vec::new(), None);
        if let Pass::Superstep(n) = self.at.pass {
            messages = outbox.entries(&self.layout.inbox(n + 1), self.at.batch)?;
            let read = || between(&self.layout.inbox(n), self.at.last.as_deref(), last.as_deref());
            consumed = has_received.then(read);
        }
        next.sent += messages.len() as u64;
        next.batch += 1;
        let until = last.clone().unwrap_or_default();
        let until = Until { last: until, ends_pass, written: 0 };
        (next.last, next.until) = (last, None);
        let next = if ends_pass { next.end_pass() } else { next };
        let vertices = vertices as u64;
        Ok(Batch { messages, states, consumed, until, done: next.encode()?, vertices })
    }
}

/// The value of a state entry.
fn encode<S>(is_halted: bool, fingerprint: u32, state: &S) -> Result<Vec<u8>>
where
    Postcard: Codec<S>,
{
    let mut value = StoredState::begin(is_halted, fingerprint);
    Postcard::encode(state, &mut value)?;
    Ok(value)
}
