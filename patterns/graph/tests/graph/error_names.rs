//! Errors name the tables of the graph by the names in the program.

use keyloom::Store;
use keyloom_graph::{Blocks, Direction, Graph};
use keyloom_tables::Schema;
use keyloom_testing::errors::{alone, assert_names, reported, texts};

#[test]
fn errors_of_a_damaged_graph_show_names() {
    alone("error_names::errors_of_a_damaged_graph_show_names", || {
        let store = keyloom_testing::memory();
        let schema = Schema::open(&store, "roads").unwrap();
        let graph = Graph::<u32, String, u32>::undirected(&schema, "roads").unwrap();
        let blocks = Blocks::declare(&schema, &graph, "blocks").unwrap();
        store
            .transact(|txn| {
                (1..4_u32).try_for_each(|n| graph.vertices().put(txn, &n, &n.to_string()))?;
                graph.put_edges(txn, (1..4_u32).map(|n| ((n, "to".to_owned(), n % 3 + 1), n)))
            })
            .unwrap();
        blocks.refresh(&store).unwrap();
        let texts_of = |store: &keyloom_testing::AnyStore| {
            let snapshot = store.snapshot().unwrap();
            let mut all = reported(graph.check(&snapshot));
            all.extend(reported(blocks.check(&snapshot)));
            all.extend(texts([blocks.at(&snapshot)]));
            match graph.at(&snapshot) {
                Err(error) => all.push(error.to_string()),
                Ok(view) => {
                    for n in 1..4_u32 {
                        all.extend(texts([view.vertex(&n)]));
                        all.extend(texts([view.edge(&n, "to", &(n % 3 + 1))]));
                        all.extend(texts([view.degree(&n, Direction::Both, None)]));
                        all.extend(texts([view.page(&n, Direction::Both, None, 5, None)]));
                        let neighbours = view.neighbours(&n, Direction::Both, None);
                        all.extend(texts([
                            neighbours.and_then(|mut all| all.try_for_each(|one| one.map(drop)))
                        ]));
                    }
                }
            }
            drop(snapshot);
            let written = (1..4_u32).map(|n| {
                store.transact(|txn| {
                    graph.put_edge(txn, &n, "to", &(n + 1), &7)?;
                    graph.delete_edge(txn, &n, "to", &(n % 3 + 1)).map(drop)
                })
            });
            all.extend(texts(written));
            all.extend(texts([graph.repair(store).map(drop), blocks.repair(store).map(drop)]));
            all
        };
        assert!(assert_names(&store, texts_of).len() > 50);
    });
}
