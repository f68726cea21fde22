//! Within a budget of reads, each query returns the complete result or an error. Queries of derived
//! data are tested in the suite of derived data.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use keyloom::{Budget, Budgeted, Faulty, Memory, OverBudget, Reader, Result, Store, Subspace};
use keyloom_patterns::documents::json::Collection;
use keyloom_patterns::graph::{Direction, Graph};
use keyloom_patterns::text::{Analyzer, Query, TextIndex};
use keyloom_patterns::trees::{AdjacencyList, InsertAt, MaterializedPath, Tree};
use keyloom_patterns::{Attached, Schema};
use serde_json::json;

struct Data {
    graph: Graph<u32>,
    list: AdjacencyList<()>,
    paths: MaterializedPath<()>,
    orders: Collection<u32>,
    texts: Attached<TextIndex<u32, String>>,
}

fn filled(store: &Memory) -> Data {
    let schema = Schema::open(store, "budget").unwrap();
    let graph = Graph::<u32>::directed(&schema, "graph").unwrap().create_missing_vertices();
    let orders = Collection::open(&schema, "orders").unwrap();
    let orders = orders.with_index(&schema, ["city", "total"]).unwrap();
    let posts = schema.table::<u32, String>("posts").unwrap();
    let texts = |space: &Subspace| {
        let body = |_: &u32, body: &String, add: &mut dyn FnMut(&str)| add(body);
        Ok(TextIndex::new(space).field("body", Analyzer::simple(), body))
    };
    let texts = schema.derive(&posts, "texts", 1, texts).unwrap();
    let list = AdjacencyList::new(&Subspace::new("list"));
    let paths = MaterializedPath::new(&Subspace::new("paths"));
    store
        .transact(|txn| {
            for n in 0..40_u32 {
                graph.put_edge(txn, &n, "to", &((n * 7 + 1) % 40), &())?;
                graph.put_edge(txn, &n, "to", &((n + 1) % 40), &())?;
                let parent = (n > 0).then(|| u64::from(n.div_ceil(3)));
                insert(txn, &list, n, parent)?;
                insert(txn, &paths, n, parent)?;
                let city = if n % 2 == 0 { "Oslo" } else { "Rome" };
                orders.insert(txn, &n, &json!({ "city": city, "total": n }))?;
                posts.put(txn, &n, &format!("word{} common rare{}", n % 5, n % 17))?;
            }
            Ok(())
        })
        .unwrap();
    Data { graph, list, paths, orders, texts }
}

fn insert(
    txn: &mut impl keyloom::Writer,
    tree: &impl Tree<Value = ()>,
    n: u32,
    parent: Option<u64>,
) -> Result<()> {
    tree.insert(txn, u64::from(n) + 1, &format!("node {n}"), &(), InsertAt::last(parent))
}

macro_rules! queries {
    ($($name:literal: |$data:ident, $reader:ident| $answer:expr;)+) => {
        const NAMES: &[&str] = &[$($name),+];

        /// The result of a query, printed.
        fn answer<R: Reader>(name: &str, data: &Data, reader: &R) -> Result<String> {
            match name {
                $($name => {
                    let ($data, $reader) = (data, reader);
                    Ok(format!("{:?}", $answer))
                })+
                _ => panic!("there is no query {name}"),
            }
        }
    };
}

fn all<T>(items: impl Iterator<Item = Result<T>>) -> Result<Vec<T>> {
    items.collect()
}

queries! {
    "neighbours": |data, reader| data.graph.at(reader)?.degree(&3, Direction::Out, None)?;
    "breadth first": |data, reader| data.graph.at(reader)?.search(&3).breadth_first()?.found;
    "depth first": |data, reader| data.graph.at(reader)?.search(&3).max_depth(3).depth_first()?.found;
    "shortest path": |data, reader| data.graph.at(reader)?.search(&3).shortest_path(&2)?.found;
    "steps": |data, reader| data.graph.at(reader)?.from([&3]).out(["to"]).out(["to"]).vertices()?.found;
    "whole graph": |data, reader| data.graph.at(reader)?.to_csr()?.edge_count();
    "check of a graph": |data, reader| data.graph.check(reader)?;
    "descendants": |data, reader| all(data.list.descendants(reader, 1, ..)?)?.len();
    "descendants by path": |data, reader| all(data.paths.descendants(reader, 1, ..)?)?.len();
    "ancestors": |data, reader| data.paths.ancestors(reader, 40)?.len();
    "check of a tree": |data, reader| data.paths.check_each(reader, |_| ControlFlow::Continue(()))?;
    "find": |data, reader| {
        data.orders.find(["city", "total"])?.equal("Oslo").range(json!(10)..).page(reader)?.items
    };
    "find like": |data, reader| all(data.orders.find_like(reader, &json!({ "city": "Rome" }))?)?;
    "search": |data, reader| {
        let query = Query::all_of(["common", "word3"].map(|word| Query::term("body", word)));
        let hits = data.texts.at(reader)?.search(query).limit(5).hits(reader)?;
        hits.items.into_iter().map(|hit| hit.key).collect::<Vec<_>>()
    };
    "prefix": |data, reader| {
        data.texts.at(reader)?.search(Query::prefix("body", "rare1")).count(reader)?
    };
}

#[test]
fn queries_are_whole_or_refused() {
    let store = Memory::new();
    let data = filled(&store);
    let snapshot = store.snapshot().unwrap();
    for name in NAMES {
        let wanted = answer(name, &data, &snapshot).unwrap();
        let counting = Budgeted::new(&snapshot, Budget::new());
        assert_eq!(answer(name, &data, &counting).unwrap(), wanted, "{name}");
        let (reads, bytes) = (counting.reads(), counting.spent().bytes_read);
        assert!(reads > 1 && bytes > 0, "{name}: {reads} reads");
        let budgets = (0..reads).map(|most| Budget::new().reads(most));
        let budgets = budgets.chain((0..bytes).step_by(31).map(|most| Budget::new().bytes(most)));
        for budget in budgets {
            let limited = Budgeted::new(&snapshot, budget.clone());
            let error = answer(name, &data, &limited).expect_err(name);
            assert!(error.is_over_budget(), "{name}, {budget:?}: {error}");
        }
        let enough = Budgeted::new(&snapshot, Budget::new().reads(reads).bytes(bytes));
        assert_eq!(answer(name, &data, &enough).unwrap(), wanted, "{name}");
    }
}

#[test]
fn queries_stop_at_the_deadline_and_on_demand() {
    let store = Memory::new();
    let data = filled(&store);
    let snapshot = store.snapshot().unwrap();
    let flag = Arc::new(AtomicBool::new(true));
    for name in NAMES {
        let late = Budgeted::new(&snapshot, Budget::new().time(Duration::ZERO));
        let limit = OverBudget::Time(Duration::ZERO);
        assert_limit(answer(name, &data, &late), limit, name);
        let stopped = Budgeted::new(&snapshot, Budget::new().stop(&flag));
        assert_limit(answer(name, &data, &stopped), OverBudget::Stopped, name);
    }
}

#[test]
fn a_prefetch_after_a_refusal_reads_nothing() {
    let store = Faulty::new(Memory::new());
    let snapshot = store.snapshot().unwrap();
    let limited = Budgeted::new(&snapshot, Budget::new().reads(1));
    limited.prefetch(&[b"a"]).unwrap();
    limited.get(b"a").unwrap();
    assert!(limited.get(b"b").unwrap_err().is_over_budget());
    let before = store.operations();
    assert!(limited.prefetch(&[b"b"]).unwrap_err().is_over_budget());
    assert_eq!(store.operations(), before);
}

fn assert_limit(answer: Result<String>, wanted: OverBudget, name: &str) {
    let error = answer.expect_err(name);
    let mut causes = std::iter::successors(Some(&error as &dyn std::error::Error), |e| e.source());
    let limit = causes.find_map(|error| match error.downcast_ref()? {
        keyloom::Error::OverBudget { limit, .. } => Some(*limit),
        _ => None,
    });
    assert_eq!(limit, Some(wanted), "{name}: {error}");
}
