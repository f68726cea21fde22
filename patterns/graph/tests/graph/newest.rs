//! Newest edges first: an index of the edges by source, label and descending time.

use keyloom::{Desc, Metered, Store};
use keyloom_graph::EdgeKey;
use keyloom_tables::{Attached, Index, Schema, entry};
use keyloom_testing::laws::{clear, counts, long_property, writing};

use super::model::{LABELS, edges, vertex};
use super::{Numbers, directed};

type Newest = Attached<Index<EdgeKey<u32>, u32, (u32, String, Desc<u32>)>>;

fn with_index(store: &impl Store) -> (Numbers, Newest) {
    let schema = Schema::open(store, "test").unwrap();
    let graph = Numbers::directed(&schema, "numbers").unwrap();
    let newest = schema
        .index(graph.edges(), "newest", 1, |(source, label, _), time| {
            entry((*source, label, Desc(*time)))
        })
        .unwrap();
    (graph, newest)
}

pub fn newest_edges_agree_with_a_sorted_list(store: &impl Store) {
    long_property((edges(5, 40), edges(5, 10), 1..5_usize), |(first, second, limit)| {
        clear(store);
        let (graph, newest) = with_index(store);
        // The second list gives other times to some edges.
        for list in [&first, &second] {
            store.transact(|txn| graph.put_edges(txn, list.clone())).unwrap();
        }
        let mut model = first;
        model.extend(second);
        let snapshot = store.snapshot().unwrap();
        for source in (0..5).map(vertex) {
            for label in LABELS {
                let own = model.iter().filter(|((a, of, _), _)| *a == source && of == label);
                let mut expected: Vec<_> = own.map(|(key, time)| (*time, key.2)).collect();
                expected.sort_by_key(|(time, target)| (std::cmp::Reverse(*time), *target));
                let (mut found, mut after) = (Vec::new(), None);
                loop {
                    let query = newest.query().prefix((source, label)).limit(limit);
                    let page = query.after(after.as_ref()).records(&snapshot).unwrap();
                    found.extend(page.items.into_iter().map(|((.., to), time)| (time, to)));
                    after = page.next;
                    if after.is_none() {
                        break;
                    }
                }
                assert_eq!(found, expected);
            }
        }
    });
}

#[test]
fn a_page_of_newest_edges_reads_only_its_entries() {
    let store = Metered::new(keyloom_testing::memory());
    let (graph, newest) = with_index(&store);
    let edges = (0..2_000_u32).map(|n| ((1, "posted".to_owned(), n), n));
    store.transact(|txn| graph.put_edges(txn, edges.clone())).unwrap();
    let snapshot = store.snapshot().unwrap();
    let page = || newest.query().prefix((1, "posted")).limit(10);
    // One get for the state of the index, and one entry to know whether a page follows.
    let (keys, cost) = store.measure(|_| page().keys(&snapshot).unwrap().items);
    assert_eq!(
        keys.iter().map(|key| key.2).collect::<Vec<_>>(),
        (1_990..2_000).rev().collect::<Vec<_>>()
    );
    assert_eq!(counts(cost), [1, 1, 11, 0], "gets, ranges, keys read, keys written");
    let (_, cost) = store.measure(|_| page().records(&snapshot).unwrap());
    assert_eq!(counts(cost), [11, 1, 21, 0]);
    // One entry more than in a graph without the index.
    let with = writing(&store, |txn| graph.put_edge(txn, &2, "posted", &9, &1));
    let plain = Metered::new(keyloom_testing::memory());
    let other = directed(&plain);
    let without = writing(&plain, |txn| other.put_edge(txn, &2, "posted", &9, &1));
    assert_eq!([with[1], with[3]], [0, without[3] + 1]);
    assert!(with[0] <= without[0] + 1, "{with:?} {without:?}");
}
