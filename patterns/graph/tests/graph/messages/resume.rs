//! Runs that are stopped and resumed.

use std::ops::ControlFlow;

use keyloom::{Store, Writer};
use keyloom_graph::GraphError;
use keyloom_graph::messages::VertexProgram;
use keyloom_graph::messages::programs::{ConnectedComponents, LabelPropagation, PageRank};
use keyloom_testing::laws::{clear, dump_all};

use super::super::bad_input::graph_error;
use super::{Run, declare, prepare};

/// A run whose batches have 5 vertices.
fn fresh<P: VertexProgram<u32, u32>>(store: &impl Store, program: P) -> Run<P> {
    clear(store);
    let graph = prepare(store);
    declare(store, &graph, program).max_batch_vertices(5).threads(2)
}

/// Runs until `commits` commits were made. Returns whether the run has finished.
fn stop_after<P: VertexProgram<u32, u32>>(store: &impl Store, run: &Run<P>, commits: u32) -> bool {
    let mut made = 0;
    let stop = |_: &_| {
        made += 1;
        if made == commits { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    run.run_with(store, stop).unwrap().finished
}

fn ends_the_same<P: VertexProgram<u32, u32>>(store: &impl Store, program: impl Fn() -> P) {
    let run = fresh(store, program());
    assert!(run.run(store).unwrap().finished);
    let wanted = dump_all(store);
    let run = fresh(store, program());
    let mut commits = 0;
    while !stop_after(store, &run, 1) {
        commits += 1;
    }
    assert!(dump_all(store) == wanted, "stopped after each of {commits} commits");
    assert!(commits >= 9, "{commits} commits");
    for stop in 1..commits {
        let run = fresh(store, program());
        assert!(!stop_after(store, &run, stop));
        assert!(run.run(store).unwrap().finished);
        assert!(dump_all(store) == wanted, "stopped after commit {stop}");
    }
    // A finished run computes nothing.
    assert_eq!(run.run(store).unwrap().records, 0);
}

pub fn runs_stopped_after_any_commit_end_the_same(store: &impl Store) {
    ends_the_same(store, || PageRank::new(2));
    ends_the_same(store, || ConnectedComponents);
    ends_the_same(store, || LabelPropagation::new(2));
}

/// A control: a run that has lost its checkpoint cannot be resumed.
pub fn runs_without_their_checkpoint_are_refused(store: &impl Store) {
    for stop in [1, 5] {
        let run = fresh(store, PageRank::new(2));
        assert!(!stop_after(store, &run, stop));
        let before = dump_all(store);
        delete(store, &run, 1);
        let error = graph_error(run.run(store));
        assert!(matches!(error, GraphError::NoCheckpoint { .. }), "{error}");
        delete(store, &run, 0);
        let error = graph_error(run.run(store));
        assert!(matches!(error, GraphError::NoCheckpoint { .. }), "{error}");
        assert_eq!(dump_all(store).len(), before.len() - 2);
    }
}

/// A control: a batch that is computed twice changes the outcome.
pub fn runs_with_an_old_checkpoint_end_differently(store: &impl Store) {
    let run = fresh(store, PageRank::new(3));
    run.run(store).unwrap();
    let wanted = dump_all(store);
    let run = fresh(store, PageRank::new(3));
    // Stops in superstep 1.
    stop_after(store, &run, 8);
    let checkpoint = run.space().pack(&1_u8);
    let old = dump_all(store)[&checkpoint.to_vec()].clone();
    stop_after(store, &run, 1);
    store.transact(|txn| txn.put(&checkpoint, &old)).unwrap();
    run.run(store).unwrap();
    assert!(dump_all(store) != wanted);
}

fn delete<P: VertexProgram<u32, u32>>(store: &impl Store, run: &Run<P>, key: u8) {
    let key = run.space().pack(&key);
    store.transact(|txn| txn.delete(&key)).unwrap();
}
