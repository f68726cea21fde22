//! The trait of a user's program, and the view of a vertex that the program gets.

use std::fmt;
use std::sync::Arc;

use keyloom::Result;
use serde::Serialize;
use serde::de::DeserializeOwned;
use smallvec::{SmallVec, smallvec};

use super::aggregate::Aggregate;
use crate::VertexId;
use crate::direction::Direction;

/// A program that runs on every vertex of a graph, superstep by superstep; see the
/// [module](super).
///
/// States, messages and aggregates are stored with [`Postcard`](keyloom::value::Postcard), which
/// does not support types that need a self-describing format. Equal values must have equal bytes,
/// so use ordered collections such as `BTreeMap`.
pub trait VertexProgram<I: VertexId, E>: Send + Sync + Sized + 'static {
    /// The value of a vertex, which the program computes.
    type State: Serialize + DeserializeOwned + Send;
    /// A message from one vertex to another.
    type Message: Serialize + DeserializeOwned + Clone + Send;
    /// The [aggregate](Aggregate) that vertices contribute to; `()` if they contribute nothing.
    type Aggregate: Aggregate;

    /// The state of a vertex before the first superstep. `edges` is the number of its edges in the
    /// [direction](VertexProgram::direction) of the program.
    fn init(&self, id: &I, edges: usize) -> Self::State;

    /// One superstep of one vertex: changes its state, sends messages, and votes to halt.
    ///
    /// `messages` were sent to the vertex in the previous superstep, in the order of their senders.
    /// With a [combiner](VertexProgram::combiner) there is at most one message.
    ///
    /// Must depend only on its arguments: after a crash it is called again for the vertices whose
    /// batch was not committed.
    ///
    /// # Errors
    /// The errors of the program. The run stops before the batch of this vertex.
    fn compute(
        &self,
        vertex: &mut Vertex<'_, I, E, Self>,
        messages: &[Self::Message],
    ) -> Result<()>;

    /// The edges that [`Vertex::edges`] returns. Default: outgoing. A program that also reads
    /// incoming edges reads twice as many entries.
    fn direction(&self) -> Direction {
        Direction::Out
    }

    /// The function that combines two messages to the same vertex into one. It must be commutative
    /// and associative. Default: `None`. A combiner makes runs faster, because fewer messages are
    /// stored.
    fn combiner(&self) -> Option<fn(Self::Message, Self::Message) -> Self::Message> {
        None
    }

    /// Checks the options of the program. Called before a run begins.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) for an invalid option.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// The start vertices of the program, if it has any. If the graph lacks one of them, a run
    /// returns [`GraphError::MissingStart`](crate::GraphError::MissingStart).
    fn begins_at(&self) -> Vec<I> {
        Vec::new()
    }

    /// The options of the program, as text. A stored run is resumed only with the options with
    /// which it began.
    fn options(&self) -> String {
        String::new()
    }
}

/// An edge of a [`Vertex`].
#[derive(Clone, Debug, PartialEq)]
pub struct Edge<I, E> {
    /// The label of the edge.
    pub label: Arc<str>,
    /// The vertex at the other end.
    pub to: I,
    /// Whether the edge is directed to this vertex. Always `false` in an undirected graph.
    pub is_backward: bool,
    /// The properties of the edge.
    pub properties: E,
}

/// The receivers of a message.
pub(super) type Targets<I> = SmallVec<[I; 1]>;

/// A vertex in a superstep: the argument of [`VertexProgram::compute`].
pub struct Vertex<'v, I: VertexId, E, P: VertexProgram<I, E>> {
    /// The value of the vertex. The program may change it.
    pub state: P::State,
    pub(super) id: &'v I,
    pub(super) edges: &'v [Edge<I, E>],
    pub(super) global: Global<'v, P::Aggregate>,
    pub(super) sent: Vec<(P::Message, Targets<I>)>,
    pub(super) aggregate: Option<P::Aggregate>,
    pub(super) is_halted: bool,
}

/// The values that are the same for all vertices of a superstep.
#[derive(Clone, Copy)]
pub(super) struct Global<'v, A> {
    pub(super) superstep: u64,
    pub(super) vertices: u64,
    pub(super) aggregated: &'v A,
}

impl<I: VertexId, E, P: VertexProgram<I, E>> fmt::Debug for Vertex<'_, I, E, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vertex")
            .field("id", self.id)
            .field("superstep", &self.global.superstep)
            .finish_non_exhaustive()
    }
}

impl<'v, I: VertexId, E, P: VertexProgram<I, E>> Vertex<'v, I, E, P> {
    /// The id of the vertex.
    pub fn id(&self) -> &'v I {
        self.id
    }

    /// The number of the superstep; the first one is 0.
    pub fn superstep(&self) -> u64 {
        self.global.superstep
    }

    /// The number of vertices in the graph.
    pub fn vertices(&self) -> u64 {
        self.global.vertices
    }

    /// The edges of the vertex in the [direction](VertexProgram::direction) of the program, in the
    /// order of their keys. With both directions, a loop of a directed graph is returned twice.
    pub fn edges(&self) -> &'v [Edge<I, E>] {
        self.edges
    }

    /// The contributions of all vertices in the previous superstep, merged.
    pub fn aggregated(&self) -> &'v P::Aggregate {
        self.global.aggregated
    }

    /// Sends a message to a vertex, which receives it in the next superstep. The vertex need not be
    /// a neighbour, but must be in the graph.
    pub fn send(&mut self, to: &I, message: P::Message) {
        self.sent.push((message, smallvec![to.clone()]));
    }

    /// Sends a message along each of the [edges](Vertex::edges). Each parallel edge carries one
    /// message.
    pub fn send_to_all(&mut self, message: P::Message) {
        self.send_to_each(self.edges.iter().map(|edge| &edge.to), message);
    }

    /// Sends one message to many vertices. Keeps one copy of the message in memory.
    pub fn send_to_each<'t>(&mut self, to: impl IntoIterator<Item = &'t I>, message: P::Message) {
        let to: Targets<I> = to.into_iter().cloned().collect();
        if !to.is_empty() {
            self.sent.push((message, to));
        }
    }

    /// Halts the vertex: it is not computed again until it receives a message. The run ends when
    /// all vertices have halted and no messages are left.
    pub fn vote_to_halt(&mut self) {
        self.is_halted = true;
    }

    /// Contributes to the [aggregate](VertexProgram::Aggregate) that all vertices can read in the
    /// next superstep.
    pub fn aggregate(&mut self, value: P::Aggregate) {
        match &mut self.aggregate {
            Some(own) => own.merge(value),
            None => self.aggregate = Some(value),
        }
    }
}
