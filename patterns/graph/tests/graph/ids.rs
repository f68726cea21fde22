//! Vertex ids of all types. Their encoded forms share prefixes and suffixes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use keyloom::{Result, Store, pack};
use keyloom_graph::{Blocks, Direction, Graph, VertexId};
use keyloom_tables::Schema;
use keyloom_testing::ids::{BYTES, TEXTS};
use keyloom_testing::laws::{clear, long_property};
use proptest::collection::vec;
use proptest::prelude::*;

use super::model::{DIRECTIONS, vertex};

/// Source, label and target; vertices are given by their indexes in the list of ids.
type Edges = BTreeSet<(usize, bool, usize)>;

const fn label(is_second: bool) -> &'static str {
    if is_second { "a\0" } else { "a" }
}

/// Numbers, among which the encoded form of one is a suffix of that of another.
pub fn numbers() -> Vec<u32> {
    (0..8).map(vertex).collect()
}

pub fn texts() -> Vec<String> {
    TEXTS.map(str::to_owned).to_vec()
}

/// Runs one history: edges are put, then some edges are deleted, then a vertex. Each step is
/// compared with a set of edges between indexes of ids.
fn agrees<I: VertexId + Debug>(
    store: &impl Store,
    ids: &[I],
    is_directed: bool,
    edges: &[(usize, bool, usize)],
    gone: usize,
) {
    clear(store);
    let schema = Schema::open(store, "test").unwrap();
    let graph = match is_directed {
        true => Graph::<I, u8, u32>::directed(&schema, "ids"),
        false => Graph::<I, u8, u32>::undirected(&schema, "ids"),
    };
    let graph = graph.unwrap();
    let blocks = Blocks::declare_weighted(&schema, &graph, "blocks", |w| f64::from(*w)).unwrap();
    let mut model = Edges::new();
    // One vertex of the table has no edges at first.
    store.transact(|txn| graph.put_vertex(txn, &ids[0], &0)).unwrap();
    let mut in_table = BTreeSet::from([0]);
    for (step, (a, second, b)) in edges.iter().enumerate() {
        let (a, b) = (a % ids.len(), b % ids.len());
        let is_ordered = is_directed || ids[a] <= ids[b];
        model.insert(if is_ordered { (a, *second, b) } else { (b, *second, a) });
        store
            .transact(|txn| {
                graph.put_edge(txn, &ids[a], label(*second), &ids[b], &(step as u32))?;
                graph.put_vertex(txn, &ids[b], &1)
            })
            .unwrap();
        in_table.insert(b);
        if step % 4 == 0 {
            blocks.refresh(store).unwrap();
        }
    }
    is_as_the_model(store, &graph, ids, &model, &in_table);
    blocks.refresh(store).unwrap();
    assert_eq!(blocks.check(&store.snapshot().unwrap()).unwrap(), []);

    let gone = gone % ids.len();
    graph.delete_vertex(store, &ids[gone]).unwrap();
    model.retain(|(a, _, b)| *a != gone && *b != gone);
    in_table.remove(&gone);
    is_as_the_model(store, &graph, ids, &model, &in_table);
    blocks.refresh(store).unwrap();
    assert_eq!(blocks.check(&store.snapshot().unwrap()).unwrap(), []);
}

fn is_as_the_model<I: VertexId + Debug>(
    store: &impl Store,
    graph: &Graph<I, u8, u32>,
    ids: &[I],
    model: &Edges,
    in_table: &BTreeSet<usize>,
) {
    let snapshot = store.snapshot().unwrap();
    assert_eq!(graph.check(&snapshot).unwrap(), []);
    let view = graph.at(&snapshot).unwrap();
    let is_directed = graph.is_directed();
    let place = |id: &I| ids.iter().position(|other| other == id).expect("an id of the model");
    for (at, id) in ids.iter().enumerate() {
        for direction in DIRECTIONS {
            let (mut expected, mut degree) = (Vec::new(), 0);
            for (a, second, b) in model {
                let is_out = *a == at && (direction != Direction::In || !is_directed);
                let is_in = *b == at && (direction != Direction::Out || !is_directed);
                degree += u64::from(is_out) + u64::from(is_in);
                expected.extend(is_out.then_some((label(*second), *b)));
                let again = !is_directed && is_out;
                expected.extend((is_in && !again).then_some((label(*second), *a)));
            }
            expected.sort_unstable();
            let found = view.neighbours(id, direction, None).unwrap();
            let found =
                found.map(|one| one.map(|one| (one.label().into_owned(), one.into_vertex())));
            let found = found.collect::<Result<Vec<_>>>().unwrap();
            let mut found: Vec<_> = found.iter().map(|(of, id)| (&**of, place(id))).collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{id:?} {direction:?}");
            assert_eq!(view.degree(id, direction, None).unwrap(), degree, "{id:?} {direction:?}");
            let mut paged: Vec<(String, usize)> = Vec::new();
            let mut after = None;
            loop {
                let page = view.page(id, direction, None, 2, after.as_ref()).unwrap();
                paged.extend(page.items.iter().map(|(of, id, _)| (of.clone(), place(id))));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            paged.sort_unstable();
            let paged: Vec<_> = paged.iter().map(|(of, id)| (&**of, *id)).collect();
            assert_eq!(paged, expected, "pages of {id:?} {direction:?}");
        }
    }
    let csr = view.to_csr().unwrap();
    let ends = model.iter().flat_map(|(a, _, b)| [*a, *b]);
    let vertices: BTreeSet<usize> = ends.chain(in_table.iter().copied()).collect();
    let of_csr = csr.vertices().map(|number| place(&csr.id(number).unwrap()));
    assert_eq!(of_csr.clone().count(), vertices.len(), "no vertex twice");
    assert_eq!(of_csr.collect::<BTreeSet<_>>(), vertices);
    let mut rows = BTreeMap::new();
    for number in csr.vertices() {
        for to in csr.neighbours(number, Direction::Out) {
            let arc = (place(&csr.id(number).unwrap()), place(&csr.id(to).unwrap()));
            *rows.entry(arc).or_insert(0) += 1;
        }
    }
    let mut expected = BTreeMap::new();
    for (a, _, b) in model {
        *expected.entry((*a, *b)).or_insert(0) += 1;
        if !is_directed && a != b {
            *expected.entry((*b, *a)).or_insert(0) += 1;
        }
    }
    assert_eq!(rows, expected);
}

pub fn ids_of_all_types_are_distinguished(store: &impl Store) {
    let edges = vec((0..TEXTS.len(), any::<bool>(), 0..TEXTS.len()), 1..14);
    long_property((any::<bool>(), edges, 0..TEXTS.len()), |(directed, edges, gone)| {
        agrees(store, &numbers(), directed, &edges, gone);
        agrees(store, &texts(), directed, &edges, gone);
        let pairs = [(0, 0), (0, 20), (20, 0), (0x1414, 0), (0, 0x1414), (1, 1)];
        agrees::<(u32, u32)>(store, &pairs, directed, &edges, gone);
        agrees::<Vec<u8>>(store, &BYTES.map(<[u8]>::to_vec), directed, &edges, gone);
        let mixed = texts().into_iter().map(|text| (text, None)).collect::<Vec<_>>();
        agrees::<(String, Option<u32>)>(store, &mixed, directed, &edges, gone);
        let single = numbers().into_iter().map(|n| ((n,),)).collect::<Vec<_>>();
        agrees::<((u32,),)>(store, &single, directed, &edges, gone);
    });
}

/// The control: the encoded form of some ids is a suffix of another one, and some ids are encoded
/// differently alone and within an edge.
#[test]
fn the_forms_of_some_ids_end_like_others() {
    let forms: Vec<_> = numbers().iter().map(|id| pack(&(id,))).collect();
    let pairs = forms.iter().flat_map(|a| forms.iter().map(move |b| (a, b)));
    assert!(pairs.filter(|(a, b)| a != b && a.ends_with(b)).count() > 2);
    assert_ne!(pack(&(0_u32, 20_u32)), pack(&((0_u32, 20_u32),)));
}
