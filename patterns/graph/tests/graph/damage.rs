//! Edges that do not decode, and edges that were written without the methods of the graph.

use keyloom::value::{Codec, Postcard};
use keyloom::{Reader, Store, Writer};
use keyloom_graph::{Blocks, Direction, Graph};
use keyloom_tables::{Rule, Schema};
use keyloom_testing::laws::clear;

fn label() -> String {
    "to".to_owned()
}

/// One damaged edge is one fault: the incoming edges and the degrees of all other edges are
/// repaired, and the damaged edge can be replaced and deleted.
pub fn an_edge_that_does_not_decode_stops_no_repair(store: &impl Store) {
    clear(store);
    let graph = super::directed(store);
    store
        .transact(|txn| graph.put_edges(txn, (0..40_u32).map(|n| ((n % 4, label(), n), n))))
        .unwrap();
    let [incoming, degrees] = graph.derived_spaces();
    let damaged = graph.edges().space().pack(&(1_u32, "to", 5_u32));
    store
        .transact(|txn| {
            txn.put(&damaged, &[0xFF; 9])?;
            // Faults before the damaged edge and after it.
            txn.delete(&incoming.pack(&(0_u32, "to", 0_u32)))?;
            txn.delete(&incoming.pack(&(39_u32, "to", 3_u32)))?;
            txn.add(&degrees.pack(&(0_u8, 0_u32, "to")), 5)?;
            txn.add(&degrees.pack(&(0_u8, 3_u32, "to")), -2)
        })
        .unwrap();
    let faults = |store| graph.check(&Store::snapshot(store).unwrap()).unwrap();
    assert_eq!(faults(store).len(), 5, "{:?}", faults(store));
    let done = graph.repair(store).unwrap();
    assert_eq!((done.finished, done.undecodable), (true, 2));
    let left = faults(store);
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!((&left[0].key, left[0].rule), (&damaged, Rule::Undecodable));

    let degree = |store, id: u32, direction| {
        let snapshot = Store::snapshot(store).unwrap();
        graph.at(&snapshot).unwrap().degree(&id, direction, Some("to")).unwrap()
    };
    for id in 0..4 {
        assert_eq!(degree(store, id, Direction::Out), 10, "with the damaged one");
    }
    store.transact(|txn| graph.put_edge(txn, &1, "to", &5, &7)).unwrap();
    assert_eq!(faults(store), []);
    store.transact(|txn| txn.put(&damaged, &[0xFF; 9])).unwrap();
    assert!(store.transact(|txn| graph.delete_edge(txn, &1, "to", &5)).unwrap());
    assert_eq!(faults(store), []);
    assert_eq!([degree(store, 1, Direction::Out), degree(store, 5, Direction::In)], [9, 0]);
}

/// The check of blocks continues after an edge that cannot be read, and a repair leaves this edge
/// in place.
#[test]
fn a_check_of_blocks_names_the_edges_that_it_cannot_read() {
    let store = keyloom_testing::memory();
    let graph = super::directed(&store);
    let schema = Schema::open(&store, "test").unwrap();
    let weight = |weight: &u32| if *weight == 99 { f64::NAN } else { 1.0 };
    let blocks = Blocks::declare_weighted(&schema, &graph, "blocks", weight).unwrap();
    let edges = (0..40_u32).map(|n| ((n % 4, label(), n), n));
    store.transact(|txn| graph.put_edges(txn, edges.clone())).unwrap();
    blocks.refresh(&store).unwrap();
    let faults = || blocks.check(&store.snapshot().unwrap()).unwrap();
    assert_eq!(faults(), []);
    let space = graph.edges().space();
    let [undecodable, refused, added] =
        [(1, 5), (0, 8), (2, 7)].map(|(from, to): (u32, u32)| space.pack(&(from, "to", to)));
    let encoded = |weight: u32| {
        let mut value = Vec::new();
        Postcard::encode(&weight, &mut value).unwrap();
        value
    };
    store
        .transact(|txn| {
            txn.put(&undecodable, &[0xFF; 9])?;
            txn.put(&refused, &encoded(99))?;
            // A fault after both damaged edges.
            txn.put(&added, &encoded(6))
        })
        .unwrap();
    let found: Vec<_> = faults().into_iter().map(|fault| (fault.rule, fault.key)).collect();
    assert_eq!(
        found[..2],
        [(Rule::Undecodable, refused.clone()), (Rule::Undecodable, undecodable.clone())]
    );
    let wrong: Vec<u32> = found[2..]
        .iter()
        .map(|(rule, key)| {
            assert_eq!(*rule, Rule::Missing);
            blocks.space().unpack::<(u8, u32)>(key).unwrap().1
        })
        .collect();
    assert_eq!(wrong, [2, 7]);
    // First the mirror is repaired, because the incoming lists are read from it.
    graph.repair(&store).unwrap();
    assert_eq!(blocks.repair(&store).unwrap().undecodable, 2);
    assert_eq!(faults().len(), 2);
    let snapshot = store.snapshot().unwrap();
    assert!(
        snapshot.get(&undecodable).unwrap().is_some() && snapshot.get(&refused).unwrap().is_some()
    );
    store
        .transact(|txn| {
            graph.put_edge(txn, &1, "to", &5, &1)?;
            graph.put_edge(txn, &0, "to", &8, &1)
        })
        .unwrap();
    blocks.repair(&store).unwrap();
    assert_eq!(faults(), []);
}

/// An edge that no method of the graph could have written is reported with its key.
#[test]
fn edges_written_past_the_graph_are_reported() {
    let store = keyloom_testing::memory();
    let schema = Schema::open(&store, "test").unwrap();
    let graph = Graph::<u32>::undirected(&schema, "roads").unwrap();
    store
        .transact(|txn| {
            (0..5).try_for_each(|id| graph.vertices().put(txn, &id, &()))?;
            (0..5_u32).try_for_each(|n| graph.put_edge(txn, &n, "to", &((n + 1) % 5), &()))
        })
        .unwrap();
    let strict = graph.clone().refuse_missing_vertices();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(strict.check(&snapshot).unwrap(), []);
    store
        .transact(|txn| {
            graph.edges().put(txn, &(4, label(), 2), &())?;
            graph.edges().put(txn, &(3, label(), 9), &())
        })
        .unwrap();
    let found = |graph: &Graph<u32>| {
        let found = graph.check(&store.snapshot().unwrap()).unwrap();
        found.into_iter().map(|fault| (fault.rule, fault.to_string())).collect::<Vec<_>>()
    };
    let reversed = found(&graph);
    assert_eq!(reversed.len(), 1, "missing vertices are allowed: {reversed:?}");
    assert!(reversed[0].0 == Rule::Wrong && reversed[0].1.contains("is reversed"));
    let both = found(&strict);
    assert_eq!(both.len(), 2, "{both:?}");
    assert!(both.iter().any(|(rule, text)| *rule == Rule::Dangling && text.contains("9")));
    // The documented remedy.
    store
        .transact(|txn| {
            graph.edges().delete(txn, &(4, label(), 2))?;
            graph.put_edge(txn, &4, "to", &2, &())?;
            graph.vertices().put(txn, &9, &())
        })
        .unwrap();
    assert_eq!(found(&strict), []);
    // More edges than one batch reads, with a fault among the last edges.
    let directed = Graph::<u32>::directed(&schema, "flights").unwrap().create_missing_vertices();
    store
        .transact(|txn| {
            directed.put_edges(txn, (0..2_500_u32).map(|n| ((n, label(), n / 3), ())))?;
            directed.vertices().delete(txn, &2_400).map(drop)
        })
        .unwrap();
    let dangling = found(&directed);
    assert_eq!(dangling.len(), 1, "{dangling:?}");
    assert!(dangling[0].1.contains("2400"), "{dangling:?}");
}
