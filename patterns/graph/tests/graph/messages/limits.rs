//! Stores that take only small transactions.

use std::ops::ControlFlow;

use keyloom::{Limits, Memory, Store};
use keyloom_graph::messages::VertexProgram;
use keyloom_graph::messages::programs::{ConnectedComponents, LabelPropagation, PageRank};
use keyloom_testing::laws::{Dump, dump_all};

use super::{declare, edge};

/// One vertex has more edges than the number of writes in a transaction of the small store.
fn run<P: VertexProgram<u32, u32>>(
    limits: Limits,
    program: P,
    stop: impl Fn(u32) -> bool,
) -> (Dump, u32) {
    let store = Memory::builder().limits(limits).build();
    let graph = super::super::directed(&store);
    let star = (1..200).flat_map(|n| [edge(0, n, n), edge(n, n / 2, 1)]);
    let star: Vec<_> = star.collect();
    for edges in star.chunks(8) {
        store.transact(|txn| graph.put_edges(txn, edges.to_vec())).unwrap();
    }
    let run = declare(&store, &graph, program).max_batch_vertices(15).threads(1);
    let mut commits = 0;
    let mut progress = |_: &_| {
        commits += 1;
        if stop(commits) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    while !run.run_with(&store, &mut progress).unwrap().finished {}
    (dump_all(&store), commits)
}

fn same<P: VertexProgram<u32, u32>>(program: impl Fn() -> P) {
    let small = Limits::default().with_max_transaction(Some(6_000), Some(40));
    let (wanted, few) = run(Limits::default(), program(), |_| false);
    let (bytes, more) = run(small, program(), |_| false);
    assert!(more > few + 10, "{more} commits, {few} without limits");
    assert!(bytes == wanted, "with small transactions");
    for every in [1, 2, 3] {
        let (bytes, _) = run(small, program(), |commit| commit % every == 0);
        assert!(bytes == wanted, "stopped after every {every} commits");
    }
}

#[test]
fn small_transactions_do_not_change_the_bytes() {
    same(|| PageRank::new(2));
    same(|| LabelPropagation::new(2));
    same(|| ConnectedComponents);
}
