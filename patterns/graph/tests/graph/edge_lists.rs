//! Imported edge lists leave the bytes of the same edges put by the program.

use std::fmt::Write;
use std::io::{BufReader, Read};
use std::ops::ControlFlow;

use keyloom::{Metered, Store};
use keyloom_graph::{EdgeList, GraphError};
use keyloom_kit::{Progress, RepairOptions};
use keyloom_testing::laws::{clear, counts, dump_all, long_property};
use proptest::collection::vec;
use proptest::prelude::*;

use super::bad_input::graph_error;
use super::model::{any_vertex, graph};
use super::{Numbers, directed};

/// An edge with a weight, and the number of lines without an edge before it.
type Line = (u32, u32, Option<u32>, usize);

fn lines() -> impl Strategy<Value = Vec<Line>> {
    let weight = proptest::option::of(0..100_u32);
    vec((any_vertex(6), any_vertex(6), weight, 0..3_usize), 0..30)
}

fn text(lines: &[Line], separator: &str, end: &str) -> String {
    let mut text = String::new();
    for (a, b, weight, others) in lines {
        for other in ["# a comment", "", "% another"].iter().take(*others) {
            write!(text, "{other}{end}").unwrap();
        }
        write!(text, "{a}{separator}{b}").unwrap();
        if let Some(weight) = weight {
            write!(text, "{separator}{weight}").unwrap();
        }
        text.push_str(end);
    }
    text
}

fn weight(weight: Option<f64>) -> u32 {
    weight.map_or(7, |weight| weight as u32)
}

fn import(graph: &Numbers, store: &impl Store, text: &str) -> keyloom::Result<Progress> {
    graph.import_edges(store, text.as_bytes(), &EdgeList::new("to", weight))
}

pub fn imports_leave_the_bytes_of_puts(store: &impl Store) {
    let case = (any::<bool>(), lines(), 1..9_usize, 0..5_usize, 0..3_usize);
    long_property(case, |(is_directed, lines, batch, stop, format)| {
        clear(store);
        let expected = graph(store, is_directed);
        for (a, b, of_line, _) in &lines {
            let weight = weight(of_line.map(f64::from));
            store.transact(|txn| expected.put_edge(txn, a, "to", b, &weight)).unwrap();
        }
        let expected = dump_all(store);

        clear(store);
        let graph = graph(store, is_directed);
        let (separator, end) = [(" \t", "\n"), (" , ", "\r\n"), ("\t", "\n")][format];
        let text = text(&lines, separator, end);
        let list = EdgeList::new("to", weight);
        let list = if format == 1 { list.separator(',') } else { list };
        // A small buffer: lines are read in parts.
        let input = || BufReader::with_capacity(3, text.as_bytes());
        let mut options = RepairOptions { batch, resume: None };
        let mut commits = 0;
        let stopped = graph.import_edges_with(store, input(), &list, &options, |_| {
            commits += 1;
            if commits > stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let stopped = stopped.unwrap();
        let rest = lines.len() as u64 - stopped.records;
        assert_eq!(stopped.records as usize, lines.len().min((stop + 1) * batch));
        options.resume = Some(stopped.position);
        let go = |_: &Progress| ControlFlow::Continue(());
        let done = graph.import_edges_with(store, input(), &list, &options, go).unwrap();
        assert_eq!((done.records, done.finished), (rest, true));
        assert!(dump_all(store) == expected);
        let again = graph.import_edges(store, input(), &list).unwrap();
        assert_eq!((again.records as usize, again.finished), (lines.len(), true));
        assert!(dump_all(store) == expected);
    });
}

#[test]
fn the_size_in_a_matrix_market_file_is_no_edge() {
    let store = keyloom_testing::memory();
    let graph = directed(&store);
    let text =
        "%%MatrixMarket matrix coordinate real general\n% made by hand\n\n3 3 2\n1 2 5\n3 3 6";
    assert_eq!(import(&graph, &store, text).unwrap().records, 2);
    let resume = import(&graph, &store, &text[..text.len() - 6]).unwrap().position;
    let options = RepairOptions { batch: 1, resume: Some(resume) };
    let list = EdgeList::new("to", weight);
    let go = |_: &Progress| ControlFlow::Continue(());
    let rest = graph.import_edges_with(&store, text.as_bytes(), &list, &options, go).unwrap();
    assert_eq!(rest.records, 1);
    let snapshot = store.snapshot().unwrap();
    assert_eq!(graph.at(&snapshot).unwrap().edge(&3, "to", &3).unwrap(), Some(6));
    let symmetric = "%%MatrixMarket matrix COORDINATE real Symmetric\n3 3 1\n1 2 5";
    let error = import(&graph, &store, symmetric).unwrap_err();
    assert!(error.to_string().contains("undirected"), "{error}");
    let error = import(&graph, &store, "%%MatrixMarket matrix array real general\n1 1\n5");
    assert!(error.unwrap_err().to_string().contains("coordinates"));
    let skew = "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 1\n1 2 5";
    let error = import(&graph, &store, skew).unwrap_err();
    assert!(error.to_string().contains("neither general nor symmetric"), "{error}");
}

/// An input that fails after its text.
struct Failing<'t>(&'t [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(into)? {
            0 => Err(std::io::Error::other("the disk is gone")),
            read => Ok(read),
        }
    }
}

#[test]
fn bad_lines_are_refused_with_their_numbers() {
    let store = keyloom_testing::memory();
    let graph = directed(&store);
    let long = format!("1 2\n{}", "7".repeat(100_000));
    let cases = [
        ("1 2\n3", 2, "1 columns"),
        ("# x\n\n1 2 3 4\n", 3, "4 columns"),
        ("1 2\nx 2\n", 2, "source \"x\""),
        ("1 2\n2 -1\n", 2, "target \"-1\""),
        ("1 2 3\n1 2 heavy", 2, "weight \"heavy\""),
        ("1 2 nan", 1, "not a finite number"),
        (long.as_str(), 2, "65536 bytes"),
    ];
    for (text, number, expected) in cases {
        let error = graph_error(import(&graph, &store, text));
        let GraphError::BadEdgeLine { line, why } = &error else { panic!("{error}") };
        assert_eq!(*line, number, "{error}");
        assert!(why.contains(expected), "{error}");
    }
    let list = EdgeList::new("to", weight);
    let error = graph_error(graph.import_edges(&store, &b"1 2\n\xFF 2\n"[..], &list));
    assert_eq!(error, GraphError::BadEdgeLine { line: 2, why: "is not UTF-8".to_owned() });
    let commas = EdgeList::new("to", weight).separator(',');
    let error = graph_error(graph.import_edges(&store, &b"1,,3"[..], &commas)).to_string();
    assert!(error.contains("line 1") && error.contains("empty target"), "{error}");
    let input = BufReader::new(Failing(b"1 2\n2 3\n"));
    let error = graph_error(graph.import_edges(&store, input, &list)).to_string();
    assert!(error.contains("line 3") && error.contains("the disk is gone"), "{error}");
    let empty = graph.import_edges(&store, &b"1 2"[..], &EdgeList::new("", weight));
    assert!(matches!(graph_error(empty), GraphError::EmptyLabel { .. }));

    // Nothing of a refused batch is stored, and a resumed import must find its line.
    let snapshot = store.snapshot().unwrap();
    assert_eq!(graph.edges().count(&snapshot, ..).unwrap(), 0);
    let go = |_: &Progress| ControlFlow::Continue(());
    let resume = import(&graph, &store, "1 2\n2 3\n").unwrap().position;
    let options = RepairOptions { batch: 9, resume: Some(resume.clone()) };
    let done = graph.import_edges_with(&store, &b"1 2\n2 3"[..], &list, &options, go).unwrap();
    assert_eq!((done.records, done.finished), (0, true));
    let error = graph.import_edges_with(&store, &b"1 2"[..], &list, &options, go).unwrap_err();
    assert!(error.to_string().contains("after the end"), "{error}");
    let last = Some(keyloom::pack("other"));
    let options =
        RepairOptions { resume: Some(keyloom_kit::RepairPosition { last, ..resume }), ..options };
    let error = graph.import_edges_with(&store, &b"1 2"[..], &list, &options, go).unwrap_err();
    assert!(error.to_string().contains("other work"), "{error}");
}

#[test]
fn imports_cost_one_transaction_per_batch() {
    let store = Metered::new(keyloom_testing::memory());
    let graph = directed(&store);
    let text: String = (0..2_500_u32).map(|n| format!("{n} {}\n", n + 10_000)).collect();
    let mut commits = 0;
    let (_, cost) = store.measure(|store| {
        let list = EdgeList::new("to", weight);
        let options = RepairOptions::default();
        graph
            .import_edges_with(store, text.as_bytes(), &list, &options, |_| {
                commits += 1;
                ControlFlow::Continue(())
            })
            .unwrap()
    });
    assert_eq!(commits, 3);
    // Per edge a get of the old edge, and 4 keys; per transaction a get of the state.
    let [gets, ranges, _, written] = counts(cost);
    assert_eq!([gets, ranges, written], [2_503, 0, 10_000]);
}
