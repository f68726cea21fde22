//! The number of threads does not change the bytes.

use keyloom::Store;
use keyloom_graph::messages::VertexProgram;
use keyloom_graph::messages::programs::{ClusteringCoefficient, LabelPropagation, PageRank};
use keyloom_testing::laws::{clear, dump_all};

use super::{declare, edge};

/// More vertices than one batch computes.
const VERTICES: u32 = 600;

fn same<P: VertexProgram<u32, u32>>(store: &impl Store, program: impl Fn() -> P) {
    let mut wanted = None;
    for threads in [1, 2, 7] {
        clear(store);
        let graph = super::super::directed(store);
        let mut rng = fastrand::Rng::with_seed(7);
        let edges: Vec<_> = (0..3_000)
            .map(|_| edge(rng.u32(..VERTICES), rng.u32(..VERTICES), rng.u32(..9)))
            .collect();
        for edges in edges.chunks(500) {
            store.transact(|txn| graph.put_edges(txn, edges.to_vec())).unwrap();
        }
        let run = declare(store, &graph, program()).threads(threads);
        assert!(run.run(store).unwrap().finished);
        let bytes = dump_all(store);
        assert!(bytes == *wanted.get_or_insert(bytes.clone()), "{threads} threads");
    }
}

pub fn threads_do_not_change_the_bytes(store: &impl Store) {
    same(store, || PageRank::new(3));
    same(store, || LabelPropagation::new(2));
    same(store, || ClusteringCoefficient);
}
