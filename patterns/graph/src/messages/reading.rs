//! The vertices of a pass, merged from the streams of their states, messages and edges.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use keyloom::value::{Codec, Postcard};
use keyloom::{Entry, Error, KeyBuf, Reader, Result, Subspace, pack, unpack};
use keyloom_kit::Fnv;

use super::checkpoint::{Checkpoint, Layout, Pass};
use super::program::{Edge, VertexProgram};
use super::source::Source;
use super::stored_state::StoredState;
use super::stream::{Stream, between, vertex_in};
use crate::incoming::decode_properties;
use crate::keys::shown;
use crate::{GraphError, VertexId};

/// The estimated memory of an entry in addition to its bytes.
// With a lower estimate, batches exceed their memory; a higher one makes batches smaller than
// necessary.
pub(super) const OVERHEAD: usize = 64;

/// A vertex with the data that its program reads.
pub(super) struct Loaded<I, E, M> {
    pub(super) id: I,
    /// The packed id.
    pub(super) own: KeyBuf,
    /// The stored value of the state; empty in the first pass.
    pub(super) stored: Vec<u8>,
    pub(super) edges: Vec<Edge<I, E>>,
    /// A hash of the entries of the edges.
    pub(super) fingerprint: u32,
    pub(super) messages: Vec<M>,
}

/// The vertices of a pass, in the order of their ids.
pub(super) struct Reading<'r, I: VertexId, E, P: VertexProgram<I, E>, R: Reader> {
    source: &'r Source<I, E>,
    layout: &'r Layout,
    program: &'r P,
    max_vertex_bytes: usize,
    visits_all: bool,
    /// The table of vertices; used in the first pass.
    vertices: Option<Stream<'r, R>>,
    /// The states; used in supersteps.
    states: Option<Stream<'r, R>>,
    /// The messages, with their subspace; used in supersteps.
    inbox: Option<(Subspace, Stream<'r, R>)>,
    /// The table of edges and its mirror. The first pass reads both, since it must find all
    /// vertices.
    edges: [Option<Stream<'r, R>>; 2],
    /// The label of the last edge, as a cache: most edges have the same label as the previous one.
    label: Arc<str>,
    /// The packed id of the last vertex.
    pub(super) last: Option<KeyBuf>,
    /// The size of the entries read so far.
    pub(super) bytes: usize,
    /// Whether messages were read.
    pub(super) has_received: bool,
}

impl<'r, I, E, P, R> Reading<'r, I, E, P, R>
where
    I: VertexId,
    E: 'static,
    P: VertexProgram<I, E>,
    R: Reader,
{
    /// Opens the streams after the last vertex of the checkpoint. Costs 3 or 4 ranges.
    pub(super) fn open(
        reader: &'r R,
        source: &'r Source<I, E>,
        layout: &'r Layout,
        program: &'r P,
        at: &Checkpoint<P::Aggregate>,
        max_vertex_bytes: usize,
    ) -> Result<Self> {
        let last = at.last.as_deref();
        let through = at.until.as_ref().map(|until| until.last.as_slice());
        let open = |space: &Subspace| Stream::open(reader, between(space, last, through));
        let (mut vertices, mut states, mut inbox) = (None, None, None);
        if let Pass::Superstep(n) = at.pass {
            let space = layout.inbox(n);
            states = Some(open(&layout.states)?);
            inbox = Some((space.clone(), open(&space)?));
        } else {
            // A key of this table is the id itself, so a tuple is flat, not one element.
            let last = last.map(unpack::<(I,)>).transpose()?.map(|(id,)| pack(&id));
            let range = between(&source.vertices, last.as_deref(), None);
            vertices = Some(Stream::open(reader, range)?);
        }
        let is_first = vertices.is_some();
        let edges = |is_mirror: bool| {
            let is_read = is_first || source.read.contains(&is_mirror);
            is_read.then(|| open(source.side(is_mirror))).transpose()
        };
        Ok(Self {
            source,
            layout,
            program,
            max_vertex_bytes,
            visits_all: at.visits_all,
            vertices,
            states,
            inbox,
            edges: [edges(false)?, edges(true)?],
            label: Arc::from(""),
            last: None,
            bytes: 0,
            has_received: false,
        })
    }

    /// The next vertex that the pass computes. Stops if `bytes` exceeds `max_bytes`, since many
    /// halted vertices may have to be skipped.
    ///
    /// # Errors
    /// [`GraphError::UnknownTarget`], [`GraphError::ChangedGraph`],
    /// [`GraphError::VertexTooLarge`].
    pub(super) fn next(&mut self, max_bytes: usize) -> Result<Step<I, E, P::Message>> {
        while let Some((id, own)) = self.next_id()? {
            let loaded = match self.vertices {
                Some(_) => Some(self.load_first(id, &own)?),
                None => self.load(id, &own)?,
            };
            self.last = Some(own);
            match loaded {
                Some(loaded) => return Ok(Step::Vertex(loaded)),
                None if self.bytes > max_bytes => return Ok(Step::Full),
                None => {}
            }
        }
        Ok(Step::End)
    }

    /// Whether the pass has no more vertices.
    pub(super) fn is_at_end(&self) -> Result<bool> {
        Ok(self.next_id()?.is_none())
    }

    /// The next vertex: the smallest id in the streams that determine the vertices of the pass.
    fn next_id(&self) -> Result<Option<(I, KeyBuf)>> {
        if let Some(vertices) = &self.vertices {
            let mut ids = Vec::new();
            if let Some((key, _)) = &vertices.head {
                let id: I = self.source.vertices.unpack(key)?;
                ids.push((pack(&(&id,)), id));
            }
            for (is_mirror, edges) in [false, true].into_iter().zip(&self.edges) {
                if let Some((key, _)) = edges.as_ref().and_then(|edges| edges.head.as_ref()) {
                    let edge = self.source.side(is_mirror).unpack(key);
                    let (id, ..): (I, Cow<'_, str>, I) =
                        edge.map_err(|e| Error::from(e).at(key))?;
                    ids.push((pack(&(&id,)), id));
                }
            }
            let least = ids.into_iter().min_by(|(a, _), (b, _)| a.cmp(b));
            return Ok(least.map(|(own, id)| (id, own)));
        }
        if self.visits_all {
            let Some((key, _)) = self.states.as_ref().and_then(|states| states.head.as_ref())
            else {
                return self.refuse_target().map(|()| None);
            };
            let (id,): (I,) = self.layout.states.unpack(key)?;
            return Ok(Some((id.clone(), pack(&(id,)))));
        }
        self.next_target()
    }

    /// The receiver of the next message.
    fn next_target(&self) -> Result<Option<(I, KeyBuf)>> {
        let Some((space, inbox)) = &self.inbox else { return Ok(None) };
        let Some((key, _)) = &inbox.head else { return Ok(None) };
        let (id, ..): (I, u64, u64) = space.unpack(key)?;
        Ok(Some((id.clone(), pack(&(id,)))))
    }

    /// Returns an error if another message is left: its receiver has no state.
    fn refuse_target(&self) -> Result<()> {
        match self.next_target()? {
            None => Ok(()),
            Some((_, own)) => Err(GraphError::UnknownTarget { vertex: shown(&own) }.into()),
        }
    }

    /// Loads a vertex in the first pass.
    fn load_first(&mut self, id: I, own: &KeyBuf) -> Result<Loaded<I, E, P::Message>> {
        let begin = self.bytes;
        if let Some(vertices) = &mut self.vertices {
            let record = vertices.next_in(&self.source.vertices.child(&id))?;
            self.bytes += record.map_or(OVERHEAD, |entry| size(&entry));
        }
        let (edges, fingerprint) = self.load_edges(&id, own, begin)?;
        let (own, stored, messages) = (own.clone(), Vec::new(), Vec::new());
        Ok(Loaded { id, own, stored, edges, fingerprint, messages })
    }

    /// Loads a vertex in a superstep; `None` if the vertex has halted and has no messages.
    fn load(&mut self, id: I, own: &KeyBuf) -> Result<Option<Loaded<I, E, P::Message>>> {
        let begin = self.bytes;
        let Some((space, inbox)) = &self.inbox else { return Ok(None) };
        let in_inbox = vertex_in(space, own);
        if inbox.is_before(&in_inbox) {
            self.refuse_target()?;
        }
        let Some((key, value)) = self.next_state(own)? else {
            return Err(GraphError::UnknownTarget { vertex: shown(own) }.into());
        };
        let stored = value.to_vec();
        let state = StoredState::split(&stored).map_err(|error| error.at(&key))?;
        self.bytes += size(&(key, value));
        let messages = self.load_messages(&in_inbox, begin)?;
        if state.is_halted && messages.is_empty() {
            return Ok(None);
        }
        let (edges, fingerprint) = self.load_edges(&id, own, begin)?;
        if fingerprint != state.fingerprint {
            return Err(GraphError::ChangedGraph { vertex: shown(own) }.into());
        }
        Ok(Some(Loaded { id, own: own.clone(), stored, edges, fingerprint, messages }))
    }

    /// The entry of the state of a vertex, if the vertex has one.
    fn next_state(&mut self, own: &[u8]) -> Result<Option<Entry<R::Bytes<'r>>>> {
        let Some(states) = &mut self.states else { return Ok(None) };
        let vertex = vertex_in(&self.layout.states, own);
        states.skip_to(&vertex)?;
        states.next_in(&vertex)
    }

    /// The messages to a vertex, combined if the program has a combiner.
    fn load_messages(&mut self, vertex: &Subspace, begin: usize) -> Result<Vec<P::Message>> {
        let (combiner, mut messages) = (self.program.combiner(), Vec::new());
        while let Some((_, inbox)) = &mut self.inbox
            && let Some((key, value)) = inbox.next_in(vertex)?
        {
            self.has_received = true;
            let message = Postcard::decode(&value).map_err(|error: Error| error.at(&key))?;
            match (combiner, messages.pop()) {
                (Some(combine), Some(other)) => messages.push(combine(other, message)),
                (_, other) => {
                    messages.extend(other);
                    messages.push(message);
                    self.weigh(vertex, begin, size(&(key, value)))?;
                }
            }
        }
        Ok(messages)
    }

    /// The edges of a vertex that the program reads, and a hash of their entries.
    fn load_edges(&mut self, id: &I, own: &[u8], begin: usize) -> Result<(Vec<Edge<I, E>>, u32)> {
        let (mut edges, mut hash) = (Vec::new(), Fnv::new());
        for is_mirror in [false, true] {
            let vertex = vertex_in(self.source.side(is_mirror), own);
            let [table, mirror] = &mut self.edges;
            let side = if is_mirror { mirror } else { table };
            // Take the stream out of `self`, so that `self` can be changed while the stream is
            // read.
            let Some(mut stream) = side.take() else { continue };
            if self.source.read.contains(&is_mirror) {
                stream.skip_to(&vertex)?;
                while let Some(entry) = stream.next_in(&vertex)? {
                    self.weigh(&vertex, begin, size(&entry))?;
                    edges.extend(self.edge(id, &vertex, is_mirror, &entry, &mut hash)?);
                }
            } else {
                stream.skip_past(&vertex)?;
            }
            let [table, mirror] = &mut self.edges;
            *(if is_mirror { mirror } else { table }) = Some(stream);
        }
        let hash = hash.finish();
        Ok((edges, (hash ^ (hash >> 32)) as u32))
    }

    /// The edge of an entry, unless it is the second entry of a loop in an undirected graph.
    fn edge<B: Deref<Target = [u8]>>(
        &mut self,
        id: &I,
        vertex: &Subspace,
        is_mirror: bool,
        (key, value): &Entry<B>,
        hash: &mut Fnv,
    ) -> Result<Option<Edge<I, E>>> {
        let rest = key.get(vertex.prefix().len()..).unwrap_or_default();
        let ends = unpack::<(Cow<'_, str>, I)>(rest);
        let (label, to) = ends.map_err(|error| Error::from(error).at(key))?;
        let is_directed = self.source.is_directed;
        if is_mirror && !is_directed && to == *id {
            return Ok(None);
        }
        [&[u8::from(is_mirror)], rest, value].into_iter().for_each(|part| hash.add(part));
        if *self.label != *label {
            self.label = Arc::from(&*label);
        }
        let properties = decode_properties(is_mirror, value, self.source.decode);
        let properties = properties.map_err(|error| error.at(key))?;
        let (label, is_backward) = (Arc::clone(&self.label), is_mirror && is_directed);
        Ok(Some(Edge { label, to, is_backward, properties }))
    }

    /// Counts the bytes of an entry, and refuses a vertex whose entries take too many.
    fn weigh(&mut self, vertex: &Subspace, begin: usize, size: usize) -> Result<()> {
        self.bytes += size;
        let bound = self.max_vertex_bytes;
        if self.bytes - begin <= bound {
            return Ok(());
        }
        Err(GraphError::VertexTooLarge { vertex: shown(vertex.prefix()), bound }.into())
    }
}

/// The result of [`Reading::next`].
pub(super) enum Step<I, E, M> {
    Vertex(Loaded<I, E, M>),
    Full,
    End,
}

/// The size of an entry, with its [`OVERHEAD`].
fn size<B: Deref<Target = [u8]>>((key, value): &Entry<B>) -> usize {
    key.len() + value.len() + OVERHEAD
}
