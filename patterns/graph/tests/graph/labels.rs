//! Rows and blocks restricted to some labels are equal to those of a graph that has only edges with
//! these labels.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::{Error, Metered, Result, Store, Writer, pack};
use keyloom_graph::{
    BlockOptions, Blocks, Csr, Direction, Graph, GraphError, VertexId, algorithms,
};
use keyloom_tables::{Rule, Schema, SchemaError};
use keyloom_testing::ids::TEXTS;
use keyloom_testing::laws::{clear, counts, dump_all, long_property, writing};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use super::ids::{numbers, texts};

/// A graph refuses the empty label, but its table of edges does not.
const LABELS: [&str; 10] = TEXTS;

type Numbers<I> = Graph<I, u8, u32>;

/// For each vertex, the neighbours in both directions and the distances, by id.
type Content<I> = BTreeMap<I, (Vec<I>, Vec<I>, Vec<(I, u64)>)>;

fn content<I: VertexId>(csr: &Csr<'_, I>) -> Content<I> {
    let around = |vertex| {
        let lists = [Direction::Out, Direction::In].map(|direction| {
            let around = csr.neighbours(vertex, direction).into_iter();
            let mut ids: Vec<I> = around.map(|other| csr.id(other).unwrap()).collect();
            ids.sort();
            ids
        });
        let distances = csr.zip(algorithms::shortest_paths(csr, vertex).unwrap());
        let mut distances: Vec<_> =
            distances.map(|found| found.map(|(id, far)| (id, far.to_bits())).unwrap()).collect();
        distances.sort();
        let [out, incoming] = lists;
        (csr.id(vertex).unwrap(), (out, incoming, distances))
    };
    csr.vertices().map(around).collect()
}

fn weight(edge: &u32) -> f64 {
    f64::from(*edge)
}

fn declare<I: VertexId>(store: &impl Store, is_directed: bool) -> Numbers<I> {
    let schema = Schema::open(store, "test").unwrap();
    match is_directed {
        true => Graph::directed(&schema, "graph").unwrap(),
        false => Graph::undirected(&schema, "graph").unwrap(),
    }
}

fn labels(taken: &BTreeSet<usize>) -> impl Iterator<Item = &'static str> {
    taken.iter().map(|label| LABELS[*label])
}

/// A change; vertices and labels are given by their indexes.
#[derive(Clone, Debug)]
enum Change {
    Put(usize, usize, usize),
    Delete(usize, usize, usize),
    PutVertex(usize),
    DeleteVertex(usize),
    Refresh,
}

fn change() -> impl Strategy<Value = Change> {
    let place = || 0..TEXTS.len();
    let edge = || (place(), 0..LABELS.len(), place());
    prop_oneof![
        8 => edge().prop_map(|(a, label, b)| Change::Put(a, label, b)),
        4 => edge().prop_map(|(a, label, b)| Change::Delete(a, label, b)),
        1 => place().prop_map(Change::PutVertex),
        1 => place().prop_map(Change::DeleteVertex),
        3 => Just(Change::Refresh),
    ]
}

/// The contents of a graph.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model<I: Ord> {
    edges: BTreeMap<(I, &'static str, I), u32>,
    vertices: BTreeSet<I>,
}

impl<I: VertexId> Model<I> {
    /// The same vertices, and only edges with these labels.
    fn only(&self, taken: &BTreeSet<usize>) -> Self {
        let taken: BTreeSet<_> = labels(taken).collect();
        let mut only = self.clone();
        only.edges.retain(|(_, label, _), _| taken.contains(label));
        only
    }

    fn apply(&mut self, graph: &Numbers<I>, ids: &[I], change: &Change, step: u32) {
        let id = |place: usize| ids[place % ids.len()].clone();
        let key = |a, label: usize, b| {
            let (a, b) = (id(a), id(b));
            let is_ordered = graph.is_directed() || a <= b;
            if is_ordered { (a, LABELS[label], b) } else { (b, LABELS[label], a) }
        };
        match *change {
            Change::Put(a, label, b) => _ = self.edges.insert(key(a, label, b), step),
            Change::Delete(a, label, b) => _ = self.edges.remove(&key(a, label, b)),
            Change::PutVertex(place) => _ = self.vertices.insert(id(place)),
            Change::DeleteVertex(place) => {
                let id = id(place);
                self.edges.retain(|(a, _, b), _| *a != id && *b != id);
                self.vertices.remove(&id);
            }
            Change::Refresh => {}
        }
    }

    /// Writes the differences from `old`.
    fn write(&self, store: &impl Store, graph: &Numbers<I>, old: &Self) {
        let key = |(a, label, b): &(I, &str, I)| (a.clone(), (*label).to_owned(), b.clone());
        store
            .transact(|txn| {
                for (edge, weight) in &self.edges {
                    if old.edges.get(edge) != Some(weight) {
                        graph.edges().put(txn, &key(edge), weight)?;
                    }
                }
                for edge in old.edges.keys().filter(|edge| !self.edges.contains_key(edge)) {
                    graph.edges().delete(txn, &key(edge))?;
                }
                for id in self.vertices.difference(&old.vertices) {
                    graph.vertices().put(txn, id, &1)?;
                }
                for id in old.vertices.difference(&self.vertices) {
                    graph.vertices().delete(txn, id)?;
                }
                Ok(())
            })
            .unwrap();
    }

    /// The rows of a graph with only these contents, in a separate store.
    fn rows(&self, is_directed: bool) -> Content<I> {
        let store = keyloom_testing::memory();
        let graph = declare(&store, is_directed);
        self.write(&store, &graph, &Self { edges: BTreeMap::new(), vertices: BTreeSet::new() });
        let csr = graph.at(&store.snapshot().unwrap()).unwrap().to_weighted_csr(weight).unwrap();
        assert_eq!(csr.edge_count() as usize, self.edges.len());
        let ends = self.edges.keys().flat_map(|(a, _, b)| [a, b]).chain(&self.vertices);
        let content = content(&csr);
        assert_eq!(content.keys().collect::<BTreeSet<_>>(), ends.collect());
        content
    }
}

fn of_blocks<I: VertexId>(store: &impl Store, blocks: &Blocks<I, u8, u32>) -> Result<Content<I>> {
    let snapshot = store.snapshot()?;
    let csr = blocks.at(&snapshot)?;
    Ok(content(&csr))
}

fn agrees<I: VertexId>(
    store: &impl Store,
    ids: &[I],
    is_directed: bool,
    taken: &BTreeSet<usize>,
    changes: &[Change],
) {
    clear(store);
    let graph = declare::<I>(store, is_directed);
    let schema = Schema::open(store, "test").unwrap();
    let options = BlockOptions::new().labels(labels(taken)).weight(weight);
    let blocks = Blocks::declare_with(&schema, &graph, "blocks", options).unwrap();
    let mut model = Model { edges: BTreeMap::new(), vertices: BTreeSet::new() };
    let mut is_stale = true;
    for (step, change) in (0..).zip(changes) {
        let before = model.clone();
        model.apply(&graph, ids, change, step);
        model.write(store, &graph, &before);
        // The blocks become stale only if these edges or the vertices change.
        is_stale |= model.only(taken) != before.only(taken);
        if matches!(change, Change::Refresh) {
            let written = blocks.refresh(store).unwrap().written;
            assert!(is_stale || written == 0, "{written} blocks");
            is_stale = false;
        }
        let expected = model.only(taken).rows(is_directed);
        let snapshot = store.snapshot().unwrap();
        let rows = graph.at(&snapshot).unwrap().rows().labels(labels(taken));
        assert_eq!(content(&rows.to_weighted_csr(weight).unwrap()), expected);
        assert_eq!(blocks.check(&snapshot).unwrap(), []);
        match of_blocks(store, &blocks) {
            Ok(found) => assert_eq!((found, is_stale), (expected, false)),
            Err(error) => {
                let error = error.downcast_ref::<GraphError>();
                assert!(matches!(error, Some(GraphError::StaleBlocks { .. })) && is_stale);
            }
        }
    }
    blocks.refresh(store).unwrap();
    let maintained = of_blocks(store, &blocks).unwrap();
    store.transact(|txn| txn.delete(&blocks.space().pack(&(1_u8,)))).unwrap();
    blocks.refresh(store).unwrap();
    assert_eq!(of_blocks(store, &blocks).unwrap(), maintained, "built again");
}

pub fn rows_of_labels_are_those_of_a_graph_of_them(store: &impl Store) {
    let taken = btree_set(0..LABELS.len(), 1..4);
    let changes = vec(change(), 1..24);
    long_property((any::<bool>(), taken, changes), |(is_directed, taken, changes)| {
        agrees(store, &numbers(), is_directed, &taken, &changes);
        agrees(store, &texts(), is_directed, &taken, &changes);
        let pairs = [(0, 0), (0, 20), (20, 0), (0x1414, 0), (0, 0x1414), (1, 1)];
        agrees::<(u32, u32)>(store, &pairs, is_directed, &taken, &changes);
    });
}

/// The control: the encoded form of some labels is a prefix or a suffix of another one.
#[test]
fn the_forms_of_some_labels_begin_and_end_like_others() {
    let forms = LABELS.map(|label| pack(&(label,)));
    let pairs = || forms.iter().flat_map(|a| forms.iter().map(move |b| (a, b)));
    assert!(pairs().filter(|(a, b)| a != b && a.starts_with(b)).count() > 2);
    assert!(pairs().filter(|(a, b)| a != b && a.ends_with(&b[1..])).count() > 2);
}

const FOLLOWS: [&str; 1] = ["follows"];

/// Vertex 0 follows 5 vertices and blocks 2,000; the blocks have only the edges with the label
/// "follows".
fn social(store: &impl Store) -> (Numbers<u32>, Blocks<u32, u8, u32>) {
    let graph = declare::<u32>(store, true);
    let options = BlockOptions::new().labels(FOLLOWS).weight(weight);
    let schema = Schema::open(store, "test").unwrap();
    let blocks = Blocks::declare_with(&schema, &graph, "blocks", options).unwrap();
    let edges = |label: &str, count| {
        let label = label.to_owned();
        (1..=count).map(move |n: u32| ((0, label.clone(), n), n))
    };
    let all = edges("follows", 5).chain(edges("blocks", 2_000));
    store.transact(|txn| graph.put_edges(txn, all.clone())).unwrap();
    blocks.refresh(store).unwrap();
    (graph, blocks)
}

#[test]
fn edges_of_other_labels_cost_blocks_nothing() {
    let store = Metered::new(keyloom_testing::memory());
    let (graph, blocks) = social(&store);
    // The edge, its mirror and two counters; two more marks if the blocks contain the edge.
    let put = |label| writing(&store, |txn| graph.put_edge(txn, &0, label, &9_000, &1))[3];
    assert_eq!(put("blocks"), 4);
    assert_eq!(blocks.at(&store.snapshot().unwrap()).unwrap().vertex_count(), 6);
    assert_eq!(blocks.refresh(&store).unwrap().written, 0);
    assert_eq!(put("follows"), 6);
    // Edges with other labels are not read, although vertex 0 has 2,001 of them.
    let [_, _, read, _] = counts(store.measure(|store| blocks.refresh(store).unwrap()).1);
    assert!(read < 100, "{read} keys");
    let snapshot = store.snapshot().unwrap();
    assert_eq!(blocks.at(&snapshot).unwrap().vertex_count(), 7);
    let view = graph.at(&snapshot).unwrap();
    let rows = || view.rows().labels(FOLLOWS).to_csr().unwrap();
    assert_eq!(counts(store.measure(|_| rows()).1), [0, 2, 2_007, 0], "one range over all edges");
}

#[test]
fn damaged_edges_of_other_labels_are_no_faults_of_blocks() {
    let store = keyloom_testing::memory();
    let (graph, blocks) = social(&store);
    let key = |label| graph.edges().space().pack(&(0_u32, label, 3_u32));
    store.transact(|txn| txn.put(&key("blocks"), &[0xFF; 9])).unwrap();
    let snapshot = store.snapshot().unwrap();
    let view = graph.at(&snapshot).unwrap();
    assert!(view.to_weighted_csr(weight).is_err(), "the control");
    assert_eq!(view.rows().labels(FOLLOWS).to_weighted_csr(weight).unwrap().edge_count(), 5);
    let faults = || blocks.check(&store.snapshot().unwrap()).unwrap();
    assert_eq!(faults(), []);
    store.transact(|txn| txn.delete(&key("blocks"))).unwrap();
    assert_eq!(faults(), []);
    // The control: an edge of the blocks is deleted without a mark, and vertex 3 with it.
    store.transact(|txn| txn.delete(&key("follows"))).unwrap();
    assert_eq!(
        faults().iter().map(|fault| fault.rule).collect::<Vec<_>>(),
        [Rule::Missing, Rule::Wrong]
    );
    graph.repair(&store).unwrap();
    blocks.repair(&store).unwrap();
    assert_eq!(faults(), []);
    assert_eq!(blocks.at(&store.snapshot().unwrap()).unwrap().edge_count(), 4);
}

#[test]
fn labels_belong_to_the_definition_of_blocks() {
    let store = keyloom_testing::memory();
    // The declarations of another program.
    let with = |name: &str, options| {
        let schema = Schema::open(&store, "test").unwrap();
        let graph = Numbers::<u32>::directed(&schema, "graph").unwrap();
        Blocks::declare_with(&schema, &graph, name, options)
    };
    let of = |labels: &[&str]| BlockOptions::new().labels(labels.iter().copied());
    with("all", BlockOptions::new()).unwrap();
    let definition = |text: &str| {
        let holds = |value: &[u8]| value.windows(text.len()).any(|part| part == text.as_bytes());
        dump_all(&store).iter().filter(|(_, value)| holds(value)).count()
    };
    assert_eq!((definition("directed, unweighted"), definition(", labels")), (1, 0), "as before");
    with("some", of(&["a", "b"])).unwrap();
    with("some", of(&["b", "a", "b"])).unwrap();
    let is_refused = |name, options| {
        let error = with(name, options).unwrap_err();
        let error = error.downcast_ref::<SchemaError>();
        assert!(matches!(error, Some(SchemaError::Contradiction { .. })), "{error:?}");
    };
    let others: [&[&str]; 6] =
        [&["a"], &["a", "b", "c"], &["a", "b\0"], &["a b"], &["a\" \"b"], &[""]];
    others.into_iter().for_each(|labels| is_refused("some", of(labels)));
    is_refused("some", BlockOptions::new());
    is_refused("all", of(&["a", "b"]));
}

#[test]
fn an_empty_list_of_labels_is_refused() {
    let store = keyloom_testing::memory();
    let graph = declare::<u32>(&store, true);
    let before = dump_all(&store);
    let snapshot = store.snapshot().unwrap();
    let view = graph.at(&snapshot).unwrap();
    let schema = Schema::open(&store, "test").unwrap();
    let options = BlockOptions::new().labels([""; 0]);
    let errors = [
        view.rows().labels([""; 0]).to_csr().unwrap_err(),
        Blocks::declare_with(&schema, &graph, "blocks", options).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, Error::InvalidArgument { what: "labels", .. }), "{error}");
    }
    assert_eq!(dump_all(&store), before);
    assert_eq!(view.rows().labels(["unknown"]).to_csr().unwrap().vertex_count(), 0);
}
