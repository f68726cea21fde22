//! Imported GraphML leaves the bytes of the same vertices and edges put by the program.

use std::fmt::Write;
use std::io::BufReader;
use std::ops::ControlFlow;

use keyloom::{Metered, Store};
use keyloom_graph::{GraphError, GraphMl, GraphMlData};
use keyloom_kit::{Progress, RepairOptions};
use keyloom_testing::laws::{clear, counts, dump_all, long_property};
use proptest::collection::vec;
use proptest::prelude::*;

use super::bad_input::graph_error;
use super::model::{any_vertex, graph};
use super::{Numbers, directed};

/// A vertex or an edge, and how it is written.
#[derive(Clone, Debug)]
enum Element {
    Vertex(u32, Option<u8>),
    Edge(u32, u32, Option<String>, Option<u32>),
}

fn elements() -> impl Strategy<Value = Vec<Element>> {
    let label = proptest::option::of(
        "[a-z<>&\"' é]{1,5}".prop_filter("not only spaces", |label| !label.trim().is_empty()),
    );
    let weight = proptest::option::of(0..100_u32);
    let vertex = (any_vertex(6), any::<Option<u8>>()).prop_map(|(id, v)| Element::Vertex(id, v));
    let edge = (any_vertex(6), any_vertex(6), label, weight)
        .prop_map(|(a, b, label, weight)| Element::Edge(a, b, label, weight));
    vec(prop_oneof![vertex, edge], 0..30)
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            // Character references may be decimal or hexadecimal.
            '\'' => escaped.push_str("&#39;"),
            'é' => escaped.push_str("&#xE9;"),
            char => escaped.push(char),
        }
    }
    escaped
}

/// A file as programs write it: with data for other programs between the properties.
fn file(elements: &[Element], is_directed: bool, is_odd: bool) -> String {
    let (edges, other) = if is_directed { ("directed", "false") } else { ("undirected", "true") };
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- a comment -->\n");
    text += "<g:graphml xmlns:g=\"http://graphml.graphdrawing.org/xmlns\"><g:desc>a <b/></g:desc>";
    text += "<g:key id=\"c\" for=\"node\" attr.name=\"color\"><g:default> 7 </g:default></g:key>";
    text += "<key id=\"weight\" for=\"edge\"/><key id=\"l\" for=\"edge\" attr.name=\"label\"/>";
    text += "<key id=\"y\" for=\"all\" yfiles.type=\"nodegraphics\"/>";
    // A graph may say the contrary of its edges.
    let default = if is_odd { other == "true" } else { is_directed };
    let default = if default { "directed" } else { "undirected" };
    write!(text, "<graph id=\"G\" edgedefault=\"{default}\"><data key=\"y\">x</data>").unwrap();
    let own = if is_odd { format!(" directed=\"{}\"", edges == "directed") } else { String::new() };
    for element in elements {
        match element {
            Element::Vertex(id, None) => write!(text, "<node id=\"n{id}\"/>").unwrap(),
            Element::Vertex(id, Some(color)) => write!(
                text,
                "<node id='n{id}'><port name=\"p\"><desc>q</desc></port>\n<data key=\"y\"><y:Shape \
                 a=\"1\"/></data><data key=\"c\"><![CDATA[{color}]]></data></node>"
            )
            .unwrap(),
            Element::Edge(a, b, label, weight) => {
                write!(text, "<edge source=\"n{a}\" target=\"n{b}\"{own}>").unwrap();
                if let Some(label) = label {
                    write!(text, "<data key=\"l\">{}</data>", escaped(label)).unwrap();
                }
                if let Some(weight) = weight {
                    write!(text, "<data key=\"weight\">{weight}</data>").unwrap();
                }
                text += "</edge>\n";
            }
        }
    }
    text + "</graph></g:graphml>\n"
}

fn color(data: &GraphMlData<'_>) -> Result<u8, String> {
    data.parse("color").map(Option::unwrap_or_default)
}

fn edge(data: &GraphMlData<'_>) -> Result<(String, u32), String> {
    Ok((data.get("label").unwrap_or("to").to_owned(), data.parse("weight")?.unwrap_or(7)))
}

type Read<T> = fn(&GraphMlData<'_>) -> Result<T, String>;

fn format() -> GraphMl<Read<u8>, Read<(String, u32)>> {
    GraphMl::new(color as Read<u8>, edge as Read<(String, u32)>).id_prefix("n")
}

fn put(store: &impl Store, graph: &Numbers, elements: &[Element]) {
    for element in elements {
        store
            .transact(|txn| match element {
                Element::Vertex(id, color) => graph.vertices().put(txn, id, &color.unwrap_or(7)),
                Element::Edge(a, b, label, weight) => {
                    let label = label.as_deref().unwrap_or("to");
                    graph.put_edge(txn, a, label, b, &weight.unwrap_or(7))
                }
            })
            .unwrap();
    }
}

pub fn graphml_leaves_the_bytes_of_puts(store: &impl Store) {
    let case = (any::<bool>(), any::<bool>(), elements(), 1..9_usize, 0..5_usize);
    long_property(case, |(is_directed, is_odd, elements, batch, stop)| {
        clear(store);
        put(store, &graph(store, is_directed), &elements);
        let expected = dump_all(store);

        clear(store);
        let graph = graph(store, is_directed);
        let text = file(&elements, is_directed, is_odd);
        // A small buffer: tags are read in parts.
        let input = || BufReader::with_capacity(3, text.as_bytes());
        let mut options = RepairOptions { batch, resume: None };
        let mut commits = 0;
        let stopped = graph.import_graphml_with(store, input(), &format(), &options, |_| {
            commits += 1;
            if commits > stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let stopped = stopped.unwrap();
        let rest = elements.len() as u64 - stopped.records;
        assert_eq!(stopped.records as usize, elements.len().min((stop + 1) * batch));
        options.resume = Some(stopped.position);
        let go = |_: &Progress| ControlFlow::Continue(());
        let done = graph.import_graphml_with(store, input(), &format(), &options, go).unwrap();
        assert_eq!((done.records, done.finished), (rest, true));
        assert!(dump_all(store) == expected);
        let again = graph.import_graphml(store, input(), &format()).unwrap();
        assert_eq!((again.records as usize, again.finished), (elements.len(), true));
        assert!(dump_all(store) == expected);
    });
}

/// A file with these elements in a directed graph.
fn around(elements: &str) -> String {
    format!("<graphml><graph edgedefault=\"directed\">{elements}</graph></graphml>")
}

#[test]
fn bad_elements_are_refused_with_their_position() {
    let store = keyloom_testing::memory();
    let graph = directed(&store);
    let key = "<graphml><key id=\"color\"/><graph edgedefault=\"directed\"><node id=\"n1\">";
    let node = |data: &str| format!("{key}{data}</node></graph></graphml>");
    let long = node(&format!("<data key=\"color\">{}", "7".repeat(20_000_000)));
    let pieces = node(&format!("<data key=\"color\">{}", "7<!---->".repeat(3_000_000)));
    let deep = node(&format!("<data key=\"color\">{}", "<a>".repeat(1_000)));
    let keys: String = (0..1_001).map(|n| format!("<key id=\"{n}\"/>")).collect();
    let cases = [
        (String::new(), "without an element <graphml>"),
        ("<html><body/></html>".to_owned(), "without an element <graphml>"),
        ("<graphml><graph>".to_owned(), "\"edgedefault\""),
        ("<graphml><graph edgedefault=\"directed\">".to_owned(), "too early"),
        (around("<node/>"), "<node> without \"id\""),
        (around("<node id=\"7\"/>"), "lacks the prefix \"n\""),
        (around("<node id=\"n\"/>"), "an empty id"),
        (around("<node id=\"nx\"/>"), "the id \"x\", which is not an id"),
        (around("<edge source=\"n1\"/>"), "<edge> without \"target\""),
        (around("<edge source=\"n1\" target=\"n-1\"/>"), "the target \"-1\""),
        (around("<edge source=\"n1\" target=\"n2\" directed=\"false\"/>"), "an undirected edge"),
        (around("<hyperedge><endpoint node=\"n1\"/></hyperedge>"), "hyperedge"),
        (around("<node id=\"n1\"><graph edgedefault=\"directed\"/></node>"), "inside of a node"),
        (around("<node id=\"n1\"><data>7</data></node>"), "<data> without \"key\""),
        (node("<data key=\"color\">red</data>"), "the color \"red\""),
        (node("<data key=\"color\">&red;</data>"), "entity &red;"),
        (node("<data key=\"color\">7</data><data key=\"color\">7</data>"), "two data"),
        (node("<data key=\"colour\">7</data>"), "not declared"),
        (around("<node id=\"n1\"/><key id=\"color\"/>"), "declares a key behind"),
        (around("</graph><graph edgedefault=\"directed\">"), "a second graph"),
        (
            "<graphml><graph edgedefault=\"Directed\">".to_owned(),
            "edgedefault=\"Directed\", which is none of directed, undirected",
        ),
        (
            around("<edge source=\"n1\" target=\"n2\" directed=\"yes\"/>"),
            "directed=\"yes\", which is none of true, 1, false, 0",
        ),
        ("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><graphml/>".to_owned(), "to UTF-8"),
        (format!("<graphml>{keys}"), "more than 1000 keys"),
        (deep, "256 levels"),
        (pieces, "more than 16777216 bytes"),
        (around("<node id=\"n1\"></edge>"), "cannot be read"),
        (around("<node id=\"n1\" id=\"n2\"/>"), "cannot be read"),
        (node("<data key=\"color\">7"), "cannot be read"),
        (long, "more than 16777216 bytes"),
    ];
    for (text, expected) in cases {
        let error = graph_error(graph.import_graphml(&store, text.as_bytes(), &format()));
        let GraphError::BadGraphMl { byte, why } = &error else { panic!("{error}") };
        assert!(why.contains(expected), "{error}, not {expected}");
        assert!(*byte <= text.len() as u64, "{error}");
    }
    // A file that is cut off anywhere is refused, and no byte makes the import panic.
    let whole =
        file(&[Element::Vertex(1, Some(2)), Element::Edge(1, 2, None, Some(3))], true, false);
    let go = |bytes: &[u8]| graph.import_graphml(&store, bytes, &format());
    assert_eq!(go(whole.trim_end().as_bytes()).unwrap().records, 2);
    for n in 0..whole.trim_end().len() {
        if whole.is_char_boundary(n) {
            graph_error(go(&whole.as_bytes()[..n]));
        }
        for byte in [0, b'<', b'>', b'&', 0xFF] {
            let mut damaged = whole.clone().into_bytes();
            damaged[n] = byte;
            let _ = go(&damaged);
        }
    }
}

#[test]
fn an_edge_list_cannot_resume_a_graphml_import() {
    let store = keyloom_testing::memory();
    let graph = directed(&store);
    let text = around("<node id=\"n1\"/><node id=\"n2\"/>");
    let resume = graph.import_graphml(&store, text.as_bytes(), &format()).unwrap().position;
    let options = RepairOptions { batch: 1, resume: Some(resume) };
    let go = |_: &Progress| ControlFlow::Continue(());
    let list = keyloom_graph::EdgeList::new("to", |_| 7);
    let refused = graph.import_edges_with(&store, &b"1 2\n2 3\n3 4"[..], &list, &options, go);
    assert!(refused.unwrap_err().to_string().contains("other work"));
    let short = around("<node id=\"n1\"/>");
    let refused = graph.import_graphml_with(&store, short.as_bytes(), &format(), &options, go);
    assert!(refused.unwrap_err().to_string().contains("after the end"));
}

#[test]
fn data_have_names_and_defaults() {
    let store = keyloom_testing::memory();
    let graph = directed(&store);
    let text = "<graphml><key id=\"a\" for=\"node\" attr.name=\"x\"><default>1</default></key>\
        <key id=\"b\" attr.name=\"y\"><default>2</default></key><key id=\"c\" for=\"edge\">\
        <default>3</default></key><key id=\"d\" for=\"node\"/><key id=\"e\"/><graph edgedefault=\"directed\">\
        <node id=\" n1 \"><data key=\"e\">5</data><data key=\"b\"/></node></graph></graphml>";
    let data = std::cell::RefCell::new(Vec::new());
    let format = GraphMl::new(
        |node: &GraphMlData<'_>| {
            let all = node.iter().map(|(name, text)| format!("{name}={text}"));
            data.borrow_mut().extend(all);
            assert_eq!((node.get("c"), node.get("d"), node.get("y")), (None, None, Some("")));
            assert_eq!((node.attribute("id"), node.attribute("port")), (Some(" n1 "), None));
            Ok(0)
        },
        edge,
    );
    graph.import_graphml(&store, text.as_bytes(), &format.id_prefix("n")).unwrap();
    assert_eq!(data.into_inner(), ["e=5", "y=", "x=1"]);
}

#[test]
fn imports_of_graphml_cost_one_transaction_per_batch() {
    let store = Metered::new(keyloom_testing::memory());
    let graph = directed(&store);
    let nodes: String = (0..2_500_u32).map(|n| format!("<node id=\"n{n}\"/>")).collect();
    let text = around(&nodes);
    let mut commits = 0;
    let (_, cost) = store.measure(|store| {
        let options = RepairOptions::default();
        let progress = |_: &Progress| {
            commits += 1;
            ControlFlow::Continue(())
        };
        graph.import_graphml_with(store, text.as_bytes(), &format(), &options, progress).unwrap()
    });
    assert_eq!(commits, 3);
    // Per vertex a key; per transaction a get of the state.
    let [gets, ranges, _, written] = counts(cost);
    assert_eq!([gets, ranges, written], [3, 0, 2_500]);
}
