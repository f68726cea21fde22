//! The traits of a user's program.

use std::collections::BTreeMap;

use keyloom::Result;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::vertex::Vertex;
use crate::VertexId;
use crate::direction::Direction;

/// Combines two messages to the same vertex into one. Must be commutative and associative.
pub type Combiner<M> = fn(M, M) -> M;

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

    /// The function that combines messages to the same vertex. Default: `None`. A combiner makes
    /// runs faster, because fewer messages are stored.
    fn combiner(&self) -> Option<Combiner<Self::Message>> {
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

/// A value that all vertices contribute to in a superstep, and read in the next one.
///
/// `u64` and `f64` are summed; `()` is empty. Pairs and maps merge each of their parts, so a
/// `BTreeMap<String, f64>` holds named sums.
///
/// ```
/// use keyloom_graph::messages::Aggregate;
/// let mut total = (2_u64, 0.5);
/// total.merge((1, 0.25));
/// assert_eq!(total, (3, 0.75));
/// ```
pub trait Aggregate: Serialize + DeserializeOwned + Clone + Default + Send + Sync {
    /// Adds a contribution. Contributions are merged in the order of the vertices.
    fn merge(&mut self, other: Self);
}

impl Aggregate for () {
    fn merge(&mut self, (): Self) {}
}

impl Aggregate for u64 {
    fn merge(&mut self, other: Self) {
        *self = self.wrapping_add(other);
    }
}

impl Aggregate for f64 {
    fn merge(&mut self, other: Self) {
        *self += other;
    }
}

impl<A: Aggregate, B: Aggregate> Aggregate for (A, B) {
    fn merge(&mut self, other: Self) {
        self.0.merge(other.0);
        self.1.merge(other.1);
    }
}

impl<K, A: Aggregate> Aggregate for BTreeMap<K, A>
where
    K: Serialize + DeserializeOwned + Ord + Clone + Send + Sync,
{
    fn merge(&mut self, other: Self) {
        for (name, value) in other {
            self.entry(name).or_default().merge(value);
        }
    }
}
