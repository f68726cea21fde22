//! Faults, conflicts and concurrent runs.

use keyloom::{Fault, Faulty, Store};
use keyloom_graph::messages::VertexProgram;
use keyloom_graph::messages::programs::{ConnectedComponents, PageRank};
use keyloom_testing::laws::{Dump, clear, dump_all, failing_operations};

use super::{Run, declare, prepare};

/// A run whose batches have 7 vertices.
fn fresh<P: VertexProgram<u32, u32>>(store: &impl Store, program: P) -> Run<P> {
    clear(store);
    let graph = prepare(store);
    declare(store, &graph, program).max_batch_vertices(7).threads(2)
}

fn wanted<P: VertexProgram<u32, u32>>(store: &impl Store, program: P) -> Dump {
    fresh(store, program).run(store).unwrap();
    dump_all(store)
}

pub fn runs_with_faults_end_with_the_same_bytes(store: &(impl Store + Clone)) {
    let wanted = wanted(store, PageRank::new(1));
    let faulty = Faulty::new(store.clone());
    let faults = [Fault::Error, Fault::Conflict, Fault::UnknownAndLost, Fault::UnknownButCommitted];
    for fault in faults {
        for n in failing_operations() {
            let run = fresh(store, PageRank::new(1));
            faulty.fail_at(n, fault);
            let outcome = run.run(&faulty);
            let is_missed = faulty.operations() <= n;
            faulty.clear_fault();
            if outcome.is_err() {
                run.run(store).unwrap();
            }
            assert!(dump_all(store) == wanted, "{fault:?} at operation {n}: {outcome:?}");
            if is_missed {
                assert!(n > 60, "a run has only {n} operations that can fail");
                break;
            }
            assert!(fault == Fault::Conflict || outcome.is_err());
        }
    }
}

pub fn runs_side_by_side_end_with_the_same_bytes(store: &impl Store) {
    let wanted = wanted(store, ConnectedComponents);
    for _ in 0..5 {
        let run = fresh(store, ConnectedComponents);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| assert!(run.run(store).unwrap().finished));
            }
        });
        assert!(dump_all(store) == wanted);
    }
}
