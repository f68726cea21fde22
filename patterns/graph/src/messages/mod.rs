//! Batch processing by messages: how is every vertex of a graph computed from its neighbours?
//!
//! The catalogue calls it **batch graph processing**, the literature *vertex-centric* or *bulk
//! synchronous* processing. A [`VertexProgram`] runs on all vertices in *supersteps*. In a
//! superstep, a vertex reads the messages that were sent to it in the previous one, changes its
//! state, and sends messages. It can vote to halt; a message wakes it up. The run ends when all
//! vertices have halted and no messages are left. [`programs`] has the usual algorithms.
//!
//! ```
//! use keyloom::{Memory, Result, Store};
//! use keyloom_graph::Graph;
//! use keyloom_graph::messages::{Combiner, Computation, Vertex, VertexProgram};
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
//!     fn combiner(&self) -> Option<Combiner<u32>> {
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
//! A run has the subspace of a table of the schema, so no other handle writes there:
//!
//! | key | value |
//! |---|---|
//! | `(0)` | header: format (1, one byte), version and options of the program |
//! | `(1)` | checkpoint: format (1, one byte), hash of the header, superstep, last vertex done, counts, aggregates of the previous superstep and of this one so far |
//! | `(2, vertex)` | whether the vertex has halted (one byte), a hash of its edges (4 bytes), its state |
//! | `(3, superstep, receiver, batch, n)` | message n that the batch of this number sent to the receiver; with a combiner there is one |
//!
//! States, messages and aggregates are in Postcard. When the run has finished, the header, the
//! checkpoint and the states are left.
//!
//! # How a run works
//!
//! A first pass over vertices and edges writes the first states. Then each superstep merges the
//! states, the messages and the edges, which are all in the order of the vertices. If all vertices
//! have halted, the messages alone decide which vertices are read.
//!
//! The vertices are processed in batches, whose size is bounded by the number of vertices and by
//! bytes. A batch reads its vertices in a snapshot and computes them on several threads. It writes
//! the changed states, the messages for the next superstep and the checkpoint in one transaction.
//! The same transaction deletes the messages that the batch has read. So a run that was killed
//! continues after the last batch. The outcome does not depend on the number of threads or on
//! interruptions.
//!
//! If the store limits the size of a transaction, the messages of a batch may take several. Each of
//! them stores where the batch ends and how many of its messages are written. A run that was killed
//! in between computes the same batch again, and writes the rest.
//!
//! # Invariants
//!
//! 1. A superstep reads exactly the messages that were sent in the previous one.
//! 2. A batch is computed from the states before it, and committed once. Two processes that run the
//!    same program compute the same batches, and the first to commit wins.
//! 3. Where batches end depends on the data, the options of the run and the limits of the store.
//!    There is one exception: if a store reports a snapshot as too old (FoundationDB after 5
//!    seconds), the batch is halved. Floating-point messages that are summed by a combiner can then
//!    differ in the last bits, since the sums are made per batch.
//!
//! **The graph must not change during a run.** Each state holds a hash of the edges that the
//! program reads. A vertex whose edges were changed is reported with [`GraphError::ChangedGraph`]
//! when it is next computed. Vertices that are added after the first pass are ignored, and a
//! message to one is an error.
//!
//! # Cost
//!
//! | operation | reads | writes |
//! |---|---|---|
//! | first pass | all vertices, all edges in both directions | 1 key per vertex |
//! | superstep | all states, all messages, the edges of the vertices that are computed; only the states of the receivers if all vertices have halted | 1 key per changed state, 1 per message and batch with a combiner, else 1 per message; 1 range deleted per batch |
//! | batch | 2 gets, 3 or 4 ranges; further ranges to skip vertices that are not computed | 1 transaction of 2 gets |
//! | [`result`](Computation::result) | 3 gets | |
//!
//! Memory: a batch, twice while it is written, and all edges and messages of one vertex. See
//! [`max_batch_bytes`](Computation::max_batch_bytes) and
//! [`max_vertex_bytes`](Computation::max_vertex_bytes).
//!
//! # When not to use it
//!
//! For a question about the surroundings of one vertex, use a [search](crate::search). For a graph
//! that fits in memory, load it and compute there: a run writes every message to the store.
//!
//! # Source
//!
//! G. Malewicz et al., *Pregel: A System for Large-Scale Graph Processing* (2010), and its open
//! implementation Apache Giraph, for the model and the names. The programs compute what the LDBC
//! Graphalytics benchmark specifies.

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
mod vertex;

pub use computation::Computation;
pub use program::{Aggregate, Combiner, VertexProgram};
pub use vertex::{Edge, Vertex};

#[cfg(doc)]
use crate::GraphError;
