//! Algorithms over a whole graph: keyloom's blocks on LMDB, and rows built from ordered keys,
//! compared with the crate `graph` and petgraph in memory.
//!
//! `KEYLOOM_GRAPH_SCALE` sets the number of vertices as a power of two, with 16 edges per vertex
//! (R-MAT, without duplicates).

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "whole_graph/by_hand.rs"]
mod by_hand;

use std::hint::black_box;

use graph::prelude::{
    CsrLayout, DirectedCsrGraph, GraphBuilder, PageRankConfig, UndirectedCsrGraph, WccConfig,
    global_triangle_count, page_rank, relabel_graph, wcc_afforest_dss,
};
use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Store};
use keyloom_compare::{compare, rmat};
use keyloom_patterns::Schema;
use keyloom_patterns::graph::{Blocks, Graph, algorithms};
use petgraph::unionfind::UnionFind;

use by_hand::Incoming;

const ITERATIONS: usize = 10;
/// Number of edges sorted and written per transaction.
const BATCH: usize = 1_000_000;

fn scale() -> u32 {
    std::env::var("KEYLOOM_GRAPH_SCALE").map_or(16, |scale| scale.parse().unwrap())
}

fn main() {
    println!("ratios are keyloom / peer: below 1 keyloom is faster\n");
    let mut edges = rmat::edges(scale(), 16, 1);
    edges.sort_unstable();
    edges.dedup();
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore).map_bytes(64 << 30);
    let store = options.open(directory.path()).unwrap();
    let schema = Schema::open(&store, "compare").unwrap();
    let own = Graph::<u32>::directed(&schema, "graph").unwrap();
    for part in edges.chunks(BATCH) {
        let part = part.iter().map(|(a, b)| ((*a, "to".to_owned(), *b), ()));
        store.transact(|txn| own.put_edges(txn, part.clone())).unwrap();
    }
    let blocks = Blocks::declare(&schema, &own, "blocks").unwrap();
    let start = std::time::Instant::now();
    blocks.refresh(&store).unwrap();
    println!("blocks built in {:.1} s", start.elapsed().as_secs_f64());
    let snapshot = store.snapshot().unwrap();
    let rows = blocks.at(&snapshot).unwrap();
    println!(
        "{} vertices, {} edges; lists of both directions: {:.2} bytes per edge\n",
        rows.vertex_count(),
        rows.edge_count(),
        rows.list_bytes() as f64 / rows.edge_count() as f64,
    );
    let directed: DirectedCsrGraph<u32> =
        GraphBuilder::new().csr_layout(CsrLayout::Sorted).edges(edges.clone()).build();
    let incoming = Incoming::of(&edges, 1 << scale());
    let options = algorithms::PageRankOptions {
        iterations: ITERATIONS,
        ..algorithms::PageRankOptions::default()
    };
    let config = PageRankConfig::new(ITERATIONS, 0.0, 0.85);
    let operations = edges.len() * ITERATIONS;
    compare(
        "PageRank, per edge and iteration",
        operations,
        5,
        &mut [
            ("blocks on LMDB, with opening them", &mut || {
                let rows = blocks.at(&snapshot).unwrap();
                black_box(algorithms::page_rank(&rows, &options).unwrap());
            }),
            ("graph", &mut || drop(black_box(page_rank(&directed, config)))),
            ("by hand, f64", &mut || drop(black_box(incoming.page_rank::<f64>(ITERATIONS)))),
            ("by hand, f32", &mut || drop(black_box(incoming.page_rank::<f32>(ITERATIONS)))),
        ],
    );
    compare(
        "PageRank from ordered keys",
        operations,
        3,
        &mut [
            ("rows made of keys", &mut || {
                let rows = own.at(&snapshot).unwrap().to_csr().unwrap();
                black_box(algorithms::page_rank(&rows, &options).unwrap());
            }),
            ("blocks on LMDB", &mut || {
                let rows = blocks.at(&snapshot).unwrap();
                black_box(algorithms::page_rank(&rows, &options).unwrap());
            }),
        ],
    );
    let source = rows.vertex(&edges[edges.len() / 2].0).unwrap();
    let mut petgraph =
        petgraph::csr::Csr::<(), (), petgraph::Directed, u32>::from_sorted_edges(&edges).unwrap();
    while (petgraph.node_count() as u64) < 1 << scale() {
        petgraph.add_node(());
    }
    compare(
        "breadth-first search",
        edges.len(),
        5,
        &mut [
            ("blocks on LMDB", &mut || drop(black_box(algorithms::bfs(&rows, source).unwrap()))),
            ("petgraph", &mut || {
                let mut search = petgraph::visit::Bfs::new(&petgraph, edges[edges.len() / 2].0);
                let mut seen = 0;
                while search.next(&petgraph).is_some() {
                    seen += 1;
                }
                black_box(seen);
            }),
        ],
    );
    compare(
        "weakly connected components",
        edges.len(),
        5,
        &mut [
            ("blocks on LMDB", &mut || drop(black_box(algorithms::weak_components(&rows)))),
            ("graph", &mut || {
                black_box(wcc_afforest_dss(&directed, WccConfig::default()));
            }),
            ("petgraph's union-find", &mut || {
                let mut sets = UnionFind::<u32>::new(1 << scale());
                edges.iter().for_each(|(a, b)| _ = sets.union(*a, *b));
                black_box(sets.into_labeling());
            }),
        ],
    );
    let mut undirected: UndirectedCsrGraph<u32> =
        GraphBuilder::new().csr_layout(CsrLayout::Deduplicated).edges(edges.clone()).build();
    relabel_graph(&mut undirected);
    compare(
        "triangles",
        edges.len(),
        2,
        &mut [
            ("blocks on LMDB", &mut || _ = black_box(algorithms::triangles(&rows))),
            ("graph, relabelled before", &mut || _ = black_box(global_triangle_count(&undirected))),
        ],
    );
    // keyloom orders the lists by degree in each count. To order ordered lists takes `graph` the
    // same work.
    compare(
        "triangles, lists ordered in each count",
        edges.len(),
        2,
        &mut [
            ("blocks on LMDB", &mut || _ = black_box(algorithms::triangles(&rows))),
            ("graph", &mut || {
                relabel_graph(&mut undirected);
                black_box(global_triangle_count(&undirected));
            }),
        ],
    );
}
