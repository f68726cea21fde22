//! Message-passing programs: their results, which faults, kills and resumes do not change.

mod bad_input;
mod costs;
mod faults;
mod graphalytics;
mod kills;
mod limits;
mod naive;
mod programs;
mod resume;
mod same_bytes;

use keyloom::{Result, Store};
use keyloom_graph::messages::{Computation, VertexProgram};
use keyloom_graph::{EdgeKey, VertexId};
use keyloom_tables::Schema;
use keyloom_testing::on_every_store_and_server;

use super::Numbers;

type Run<P> = Computation<P, u32, u8, u32>;

/// A run of `program` over the graph of the other tests.
fn declare<P: VertexProgram<u32, u32>>(store: &impl Store, graph: &Numbers, program: P) -> Run<P> {
    let schema = Schema::open(store, "programs").unwrap();
    Computation::declare(&schema, graph, std::any::type_name::<P>(), 1, program).unwrap()
}

fn states<P, I, E>(store: &impl Store, run: &Computation<P, I, u8, E>) -> Vec<(I, P::State)>
where
    P: VertexProgram<I, E>,
    I: VertexId,
    E: Send + Sync + 'static + serde::Serialize + serde::de::DeserializeOwned,
{
    run.results(&store.snapshot().unwrap()).unwrap().collect::<Result<_>>().unwrap()
}

fn edge(source: u32, target: u32, weight: u32) -> (EdgeKey<u32>, u32) {
    ((source, "to".to_owned(), target), weight)
}

/// A graph of 12 vertices, one of them without edges and one with an edge to all others.
fn prepare(store: &impl Store) -> Numbers {
    let graph = super::directed(store);
    let ring = (0..11).map(|n| edge(n, (n + 1) % 11, n));
    let star = (0..11).map(|n| edge(3, n, 2 * n));
    let edges: Vec<_> = ring.chain(star).collect();
    store.transact(|txn| graph.put_edges(txn, edges.clone())).unwrap();
    store.transact(|txn| graph.put_vertex(txn, &11, &1)).unwrap();
    graph
}

on_every_store_and_server! {
    graphalytics::programs_compute_the_expected_outputs,
    programs::programs_agree_with_naive_models,
    programs::ids_of_any_type_keep_the_order,
    resume::runs_stopped_after_any_commit_end_the_same,
    resume::runs_without_their_checkpoint_are_refused,
    resume::runs_with_an_old_checkpoint_end_differently,
    faults::runs_with_faults_end_with_the_same_bytes,
    faults::runs_side_by_side_end_with_the_same_bytes,
    same_bytes::threads_do_not_change_the_bytes,
    bad_input::bad_programs_are_refused,
    bad_input::changed_graphs_are_reported,
    bad_input::runs_of_others_are_refused,
    bad_input::cleared_runs_begin_again,
}
