//! Programs, graphs and runs that are refused, and their errors.

use keyloom::{Result, Store};
use keyloom_graph::GraphError;
use keyloom_graph::messages::programs::{LabelPropagation, PageRank, ShortestPaths};
use keyloom_graph::messages::{Computation, Vertex, VertexProgram};
use keyloom_tables::Schema;
use keyloom_testing::laws::{clear, dump_all};

use super::super::bad_input::graph_error;
use super::{Run, declare, prepare, states};

/// A program with a chosen kind of misbehaviour in the second superstep.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bad {
    NeverHalts,
    SendsTo(u32),
    Fails,
}

impl<E: 'static> VertexProgram<u32, E> for Bad {
    type State = u32;
    type Message = u32;
    type Aggregate = ();

    fn init(&self, _id: &u32, edges: usize) -> u32 {
        edges as u32
    }

    fn compute(&self, vertex: &mut Vertex<'_, u32, E, Self>, messages: &[u32]) -> Result<()> {
        vertex.state += messages.len() as u32;
        match self {
            Self::NeverHalts => return Ok(()),
            Self::SendsTo(target) if *vertex.id() == 7 => vertex.send(target, 1),
            Self::Fails if *vertex.id() == 7 => return Err(keyloom::Error::other("it fails")),
            _ => {}
        }
        vertex.vote_to_halt();
        Ok(())
    }
}

pub fn bad_programs_are_refused(store: &impl Store) {
    let graph = prepare(store);
    let run = declare(store, &graph, Bad::NeverHalts).max_batch_vertices(5).max_supersteps(3);
    for _ in 0..2 {
        assert_eq!(graph_error(run.run(store)), GraphError::NeverHalts { bound: 3 });
    }
    let error = graph_error(run.results(&store.snapshot().unwrap()).map(drop));
    assert!(matches!(error, GraphError::NotFinished { .. }), "{error}");
    // A run with another bound is refused.
    let error = graph_error(run.max_supersteps(4).run(store));
    assert!(error.to_string().contains("after 4 supersteps; raise `max_supersteps`"), "{error}");

    // The target is before all vertices, between two, or after all; messages go to all vertices or
    // to few.
    for target in [12, 77] {
        for keep_awake in [false, true] {
            let schema = Schema::open(store, &format!("{target} {keep_awake}")).unwrap();
            let program = Sends { target, keep_awake };
            let run = Computation::declare(&schema, &graph, "run", 1, program).unwrap();
            let error = graph_error(run.max_batch_vertices(3).run(store));
            let expected = GraphError::UnknownTarget { vertex: format!("({target},)") };
            assert_eq!(error, expected);
        }
    }
    let schema = Schema::open(store, "fails").unwrap();
    let run = Computation::declare(&schema, &graph, "run", 1, Bad::Fails).unwrap();
    assert!(run.run(store).unwrap_err().to_string().contains("it fails"));
    let schema = Schema::open(store, "itself").unwrap();
    let run = Computation::declare(&schema, &graph, "run", 1, Bad::SendsTo(7)).unwrap();
    let error = graph_error(run.max_supersteps(9).run(store));
    assert_eq!(error, GraphError::NeverHalts { bound: 9 });

    let negative = ShortestPaths::new(3, |edge| f64::from(edge.properties) - 5.0);
    let error = graph_error(declare(store, &graph, negative).run(store));
    assert!(matches!(&error, GraphError::BadWeight { weight, .. } if weight == "-5"), "{error}");
}

/// Vertex 3 sends a message to `target`.
struct Sends {
    target: u32,
    keep_awake: bool,
}

impl<E: 'static> VertexProgram<u32, E> for Sends {
    type State = ();
    type Message = ();
    type Aggregate = ();

    fn init(&self, _id: &u32, _edges: usize) {}

    fn compute(&self, vertex: &mut Vertex<'_, u32, E, Self>, _messages: &[()]) -> Result<()> {
        if *vertex.id() == 3 {
            vertex.send(&self.target, ());
        }
        if !self.keep_awake {
            vertex.vote_to_halt();
        }
        Ok(())
    }
}

pub fn changed_graphs_are_reported(store: &impl Store) {
    let changes: [fn(&super::Numbers, &mut keyloom::DynWriter<'_>) -> Result<()>; 3] = [
        |graph, txn| graph.put_edge(txn, &5, "new", &0, &1),
        |graph, txn| graph.delete_edge(txn, &5, "to", &6).map(drop),
        |graph, txn| graph.put_edge(txn, &5, "to", &6, &99),
    ];
    for change in changes {
        clear(store);
        let graph = prepare(store);
        let run = declare(store, &graph, PageRank::new(5)).max_batch_vertices(4);
        let mut commits = 0;
        let stop = |_: &_| {
            commits += 1;
            if commits == 6 {
                std::ops::ControlFlow::Break(())
            } else {
                std::ops::ControlFlow::Continue(())
            }
        };
        assert!(!run.run_with(store, stop).unwrap().finished);
        store.transact(|txn| change(&graph, &mut keyloom::DynWriter::new(txn))).unwrap();
        let error = graph_error(run.run(store));
        assert_eq!(error, GraphError::ChangedGraph { vertex: "(5,)".to_owned() });
        run.clear(store).unwrap();
        assert!(run.run(store).unwrap().finished);
    }
    // New vertices do not take part in a run, and do not disturb it.
    clear(store);
    let graph = prepare(store);
    let run = declare(store, &graph, PageRank::new(2));
    run.run_with(store, |_| std::ops::ControlFlow::Break(())).unwrap();
    store.transact(|txn| graph.put_edge(txn, &50, "to", &60, &1)).unwrap();
    run.run(store).unwrap();
    assert_eq!(states(store, &run).len(), 12);

    let large = declare(store, &graph, LabelPropagation::new(2)).max_vertex_bytes(1_000);
    let error = graph_error(large.run(store));
    assert!(error.to_string().contains("take more than 1000 bytes"), "{error}");
    assert!(matches!(&error, GraphError::VertexTooLarge { vertex, .. } if vertex.contains('3')));
}

fn ranks(store: &impl Store, iterations: u64, version: u32) -> Run<PageRank<u32>> {
    let schema = Schema::open(store, "programs").unwrap();
    let graph = super::super::directed(store);
    let program = PageRank::new(iterations);
    Computation::declare(&schema, &graph, "ranks", version, program).unwrap()
}

pub fn runs_of_others_are_refused(store: &impl Store) {
    prepare(store);
    ranks(store, 3, 1).run(store).unwrap();
    let before = dump_all(store);
    let others = [ranks(store, 4, 1), ranks(store, 3, 2), ranks(store, 3, 1).max_batch_vertices(9)];
    for other in others {
        let error = graph_error(other.run(store));
        assert!(matches!(error, GraphError::OtherRun { .. }), "{error}");
        assert!(error.to_string().contains("version 1 with damping 0.85, 3 iterations"), "{error}");
        let snapshot = store.snapshot().unwrap();
        let error = graph_error(other.result(&snapshot, &1));
        assert!(matches!(error, GraphError::OtherRun { .. }), "{error}");
    }
    assert_eq!(dump_all(store), before);
    let schema = Schema::open(store, "programs").unwrap();
    let graph = super::super::directed(store);
    let other = Computation::declare(&schema, &graph, "ranks", 1, LabelPropagation::new(3));
    assert!(other.unwrap_err().to_string().contains("PageRank"));
}

pub fn cleared_runs_begin_again(store: &impl Store) {
    prepare(store);
    let before = ranks(store, 3, 1);
    let empty = dump_all(store);
    before.run(store).unwrap();
    let wanted = dump_all(store);
    // Header, checkpoint, states.
    assert_eq!(wanted.len() - empty.len(), 2 + 12);
    let other = ranks(store, 4, 2);
    let stop = |_: &_| std::ops::ControlFlow::Break(());
    let stopped = other.clear_with(store, stop).unwrap();
    assert!(stopped.finished && stopped.removed == 13, "{stopped:?}");
    assert_eq!(dump_all(store), empty);
    assert_eq!(other.clear(store).unwrap().removed, 0);
    before.run(store).unwrap();
    assert_eq!(dump_all(store), wanted);

    Schema::open(store, "programs").unwrap().drop_table("ranks").unwrap();
    let error = before.run(store).unwrap_err().to_string();
    assert!(error.contains("ranks"), "{error}");
}
