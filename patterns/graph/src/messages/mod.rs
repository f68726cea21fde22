//! Batch processing by message passing: how is every vertex of a graph computed from its
//! neighbours?
//!
//! The catalogue calls this pattern **batch graph processing**; the literature calls it
//! *vertex-centric* or *bulk synchronous* processing. A [`VertexProgram`] runs on all vertices in
//! *supersteps*. In a superstep, a vertex reads the messages that were sent to it in the previous
//! superstep, changes its state, and sends messages. A vertex can vote to halt; a message
//! reactivates it. The run ends when all vertices have halted and no messages are left.
//! [`programs`] has the usual algorithms.
//!
//! ```
//! use keyloom::{Memory, Result, Store};
//! use keyloom_graph::Graph;
//! use keyloom_graph::messages::{Computation, Vertex, VertexProgram};
//! use keyloom_tables::Schema;
//!
//! /// The largest vertex from which each vertex can be reached.
//! struct Largest;
//!
//! impl VertexProgram<u32, ()> for Largest {
//!     type State = u32;
//!     type Message = u32;
//!     type Aggregate = ();
//!
//!     fn init(&self, id: &u32, _edges: usize) -> u32 {
//!         *id
//!     }
//!
//!     fn compute(&self, vertex: &mut Vertex<'_, u32, (), Self>, messages: &[u32]) -> Result<()> {
//!         let largest = messages.iter().copied().fold(vertex.state, u32::max);
//!         if largest > vertex.state || vertex.superstep() == 0 {
//!             vertex.state = largest;
//!             vertex.send_to_all(largest);
//!         }
//!         vertex.vote_to_halt();
//!         Ok(())
//!     }
//!
//!     fn combiner(&self) -> Option<fn(u32, u32) -> u32> {
//!         Some(u32::max)
//!     }
//! }
//!
//! let store = Memory::new();
//! let schema = Schema::open(&store, "test")?;
//! let graph = Graph::<u32>::directed(&schema, "graph")?;
//! let edges = [(7, 1), (1, 2), (2, 1), (3, 2)];
//! let edges = edges.map(|(a, b)| ((a, "to".to_owned(), b), ()));
//! store.transact(|txn| graph.put_edges(txn, edges.clone()))?;
//!
//! let largest = Computation::declare(&schema, &graph, "largest", 1, Largest)?;
//! largest.run(&store)?;
//! let snapshot = store.snapshot()?;
//! let states = largest.results(&snapshot)?.collect::<Result<Vec<_>>>()?;
//! assert_eq!(states, [(1, 7), (2, 7), (3, 3), (7, 7)]);
//! assert_eq!(largest.result(&snapshot, &2)?, Some(7));
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Key layout
//!
//! A run is stored in the subspace of a table of the schema, which nothing else uses:
//!
//! | key | value |
//! |---|---|
//! | `(0)` | header: format (1, one byte), version and options of the program |
//! | `(1)` | checkpoint: format (1, one byte), hash of the header, superstep, last vertex computed, counts, and the aggregates of the previous and the current superstep |
//! | `(2, vertex)` | whether the vertex has halted (one byte), a hash of its edges (4 bytes), its state |
//! | `(3, superstep, receiver, batch, n)` | message n from this batch to the receiver; with a combiner, one message per batch |
//!
//! States, messages and aggregates are encoded with Postcard. After the run, the header, the
//! checkpoint and the states remain.
//!
//! # How a run works
//!
//! A first pass over vertices and edges writes the initial states. Then each superstep merges the
//! states, the messages and the edges, which are all ordered by vertex. If all vertices have
//! halted, only the vertices with messages are read.
//!
//! The vertices are processed in batches, whose size is bounded by the number of vertices and by
//! bytes. A batch reads its vertices in a snapshot and computes them on several threads. It writes
//! the changed states, the messages for the next superstep and the checkpoint in one transaction.
//! The same transaction deletes the messages that the batch has read. So a run that was killed
//! continues after the last committed batch. The results do not depend on the number of threads or
//! on interruptions.
//!
//! If the store limits the size of a transaction, the messages of a batch may take several
//! transactions. Each of these stores the end of the batch and the number of its messages that are
//! written. A run that was killed in between computes the same batch again, and writes the
//! remaining messages.
//!
//! # Invariants
//!
//! 1. A superstep reads exactly the messages that were sent in the previous superstep.
//! 2. A batch is computed from the states before the batch, and committed once. Two processes that
//!    run the same program compute the same batches; the first commit wins.
//! 3. The ends of batches depend only on the data, the options of the run and the limits of the
//!    store. There is one exception: if a store reports that a snapshot is too old (FoundationDB
//!    after 5 seconds), the size of the batch is halved. Then floating-point sums of a combiner can
//!    differ in the last bits, since messages are summed per batch.
//!
//! **The graph must not change during a run.** Each state holds a hash of the edges that the
//! program reads. If the edges of a vertex were changed, the next computation of the vertex returns
//! [`GraphError::ChangedGraph`]. Vertices that are added after the first pass are ignored; a
//! message to such a vertex is an error.
//!
//! # Cost
//!
//! | operation | reads | writes |
//! |---|---|---|
//! | first pass | all vertices, all edges in both directions | 1 key per vertex |
//! | superstep | all states, all messages, and the edges of the computed vertices; if all vertices have halted, only the states of the receivers | 1 key per changed state, 1 per message and batch with a combiner, else 1 per message; 1 range deleted per batch |
//! | batch | 2 gets, 3 or 4 ranges; further ranges to skip vertices that are not computed | 1 transaction of 2 gets |
//! | [`result`](Computation::result) | 3 gets | |
//!
//! Memory: one batch (twice its size while it is written), and all edges and messages of one
//! vertex. See [`max_batch_bytes`](Computation::max_batch_bytes) and
//! [`max_vertex_bytes`](Computation::max_vertex_bytes).
//!
//! # When not to use it
//!
//! For a query around one vertex, use a [search](crate::search). For a graph that fits in memory,
//! use the [algorithms](crate::algorithms): a run writes every message to the store.
//!
//! # Source
//!
//! The model and the names are from G. Malewicz et al., *Pregel: A System for Large-Scale Graph
//! Processing* (2010), and its open-source implementation Apache Giraph. The programs compute what
//! the LDBC Graphalytics benchmark specifies.

mod aggregate;
mod batch;
mod checkpoint;
mod computation;
mod outbox;
mod program;
pub mod programs;
mod reading;
mod run;
mod source;
mod stored_state;
mod stream;

pub use aggregate::Aggregate;
pub use computation::Computation;
pub use program::{Edge, Vertex, VertexProgram};

#[cfg(doc)]
use crate::GraphError;
