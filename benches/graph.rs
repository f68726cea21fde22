//! Graphs: loading, neighbours and searches, in memory, on LMDB and on redb.
#![allow(missing_docs, clippy::unwrap_used)]

use std::fmt::Write;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use keyloom::{AnyStore, Lmdb, Memory, Store};
use keyloom_patterns::Schema;
use keyloom_patterns::graph::{Direction, EdgeList, Graph, GraphMl};
use keyloom_redb::Redb;

const VERTICES: u32 = 20_000;
const EDGES: usize = 200_000;

type Edges = Vec<((u32, String, u32), u32)>;

/// Random edges, skewed towards vertices with small numbers.
fn edges() -> Edges {
    let mut random = fastrand::Rng::with_seed(20);
    let mut end = || random.u32(..VERTICES).min(random.u32(..VERTICES));
    (0..EDGES).map(|n| ((end(), "to".to_owned(), end()), n as u32 % 100)).collect()
}

/// The same edges as an edge list and as GraphML.
fn files(edges: &Edges) -> (String, String) {
    let (mut lines, mut xml) = (String::new(), String::new());
    for ((from, _, to), weight) in edges {
        writeln!(lines, "{from} {to} {weight}").unwrap();
        let data = format!(r#"<data key="w">{weight}</data>"#);
        writeln!(xml, r#"<edge source="{from}" target="{to}">{data}</edge>"#).unwrap();
    }
    let key = r#"<key id="w" for="edge" attr.name="weight" attr.type="int"/>"#;
    let xml = format!(r#"<graphml>{key}<graph edgedefault="directed">{xml}</graph></graphml>"#);
    (lines, xml)
}

fn loaded(store: &AnyStore, edges: &Edges) -> Graph<u32, (), u32> {
    let graph = Graph::directed(&Schema::open(store, "bench").unwrap(), "graph").unwrap();
    for part in edges.chunks(20_000) {
        store.transact(|txn| graph.put_edges(txn, part.to_vec())).unwrap();
    }
    graph
}

fn graphs(c: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(keyloom::lmdb::Durability::MayLoseStore);
    let redb = Redb::options().durability(keyloom_redb::Durability::MayLoseCommits);
    let redb = redb.open(directory.path().join("redb")).unwrap();
    let stores: [(&str, AnyStore); 3] = [
        ("memory", Memory::new().into()),
        ("LMDB", options.open(directory.path().join("lmdb")).unwrap().into()),
        ("redb", AnyStore::other("redb:", redb)),
    ];
    let edges = edges();
    for (name, store) in stores {
        let mut group = c.benchmark_group(format!("graph/{name}"));
        let graph = loaded(&store, &edges);
        group.sample_size(10).throughput(Throughput::Elements(20_000));
        let again: Edges = edges.iter().take(20_000).cloned().collect();
        group.bench_function("put 20,000 edges again", |b| {
            b.iter(|| store.transact(|txn| graph.put_edges(txn, again.clone())).unwrap());
        });
        let (lines, xml) = files(&again);
        let list = EdgeList::new("to", |weight| weight.unwrap_or_default() as u32);
        group.bench_function("import 20,000 edges of an edge list again", |b| {
            b.iter(|| graph.import_edges(&store, lines.as_bytes(), &list).unwrap());
        });
        let format = GraphMl::new(
            |_node| Ok(()),
            |edge| Ok(("to".to_owned(), edge.parse("weight")?.unwrap_or_default())),
        );
        group.bench_function("import 20,000 edges of GraphML again", |b| {
            b.iter(|| graph.import_graphml(&store, xml.as_bytes(), &format).unwrap());
        });
        let snapshot = store.snapshot().unwrap();
        let view = graph.at(&snapshot).unwrap();
        group.sample_size(50).throughput(Throughput::Elements(1));
        for direction in [Direction::Out, Direction::In] {
            group.bench_function(format!("neighbours of a vertex, {direction:?}"), |b| {
                b.iter(|| view.neighbours(&500, direction, Some("to")).unwrap().count());
            });
        }
        group.bench_function("degree", |b| {
            b.iter(|| view.degree(&500, Direction::In, Some("to")).unwrap());
        });
        group.bench_function("shortest path", |b| {
            b.iter(|| view.search(&19_000).shortest_path(&18_000).unwrap().found);
        });
        group.bench_function("cheapest path", |b| {
            b.iter(|| {
                let weight =
                    |hop: &keyloom_patterns::graph::Hop<'_, u32, u32>| hop.properties.into();
                view.search(&10_000).cheapest_path(&9_000, weight).unwrap().found
            });
        });
        group.bench_function("two steps, counted", |b| {
            b.iter(|| view.from(&[10_000]).out(["to"]).out(["to"]).count().unwrap().found);
        });
    }
}

criterion_group!(benches, graphs);
criterion_main!(benches);
