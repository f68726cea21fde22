//! The neighbourhood of a vertex, compared with the edges that the test wrote.

use keyloom_graph::Graph;

use super::*;

fn of_vertex(vertex: &str) -> Params {
    Params { vertex: vertex.into(), ..named("net/links edges.incoming") }
}

fn ends(found: &Value, side: &str) -> Vec<(String, String, String)> {
    let text = |edge: &Value, field: &str| edge[field].as_str().unwrap().to_owned();
    let edges = found[side].as_array().unwrap().iter();
    edges.map(|edge| (text(edge, "label"), text(edge, "other"), text(edge, "value"))).collect()
}

fn edge(label: &str, other: &str, value: &str) -> (String, String, String) {
    (label.into(), other.into(), value.into())
}

#[test]
fn a_vertex_has_its_edges_of_both_directions() {
    let store = Metered::new(Memory::new());
    let schema = Schema::open(&store, "net").unwrap();
    let links = Graph::<String, u32, u32>::directed(&schema, "links").unwrap();
    let large = Large::of(store.clone());
    let empty = large.view("graph", of_vertex(""));
    assert_eq!(empty["vertex"], Value::Null);
    store
        .transact(|txn| {
            let mut put = |source: &str, label: &str, target: &str, number: u32| {
                links.put_edge(txn, source, label, target, &number)
            };
            put("ada", "knows", "grace", 1)?;
            put("ada", "likes", "ada", 2)?;
            put("jean", "knows", "ada", 300)?;
            put("jean", "knows", "grace", 4)?;
            links.vertices().put(txn, &"ada".to_owned(), &36)
        })
        .unwrap();
    // Without a vertex, the source of the first edge.
    for params in [of_vertex(""), of_vertex("ada"), of_vertex("\"ada\""), of_vertex(" (\"ada\",) ")]
    {
        let found = large.view("graph", params);
        assert_eq!((&found["vertex"], &found["directed"]), (&"\"ada\"".into(), &true.into()));
        assert_eq!(
            ends(&found, "out"),
            [edge("knows", "\"grace\"", "1"), edge("likes", "\"ada\"", "2")]
        );
        assert_eq!(
            ends(&found, "in"),
            [edge("knows", "\"jean\"", "300"), edge("likes", "\"ada\"", "2")]
        );
        assert_eq!(found["record"]["value"], "36");
        // The link of an incoming edge leads to the record of the edge.
        let key = links.edges().space().pack(&("jean", "knows", "ada"));
        assert_eq!(found["in"][0]["key_hex"], shown::hex(&key));
        let hex = found["out"][0]["other_hex"].as_str().unwrap();
        let next =
            large.view("graph", Params { key: hex.into(), ..named("net/links edges.incoming") });
        assert_eq!(
            (&next["vertex"], next["in"].as_array().unwrap().len()),
            (&"\"grace\"".into(), 2)
        );
        assert_eq!(next["record"], Value::Null);
    }
    let unknown = large.view("graph", of_vertex("7"));
    assert_eq!((ends(&unknown, "out"), ends(&unknown, "in")), (vec![], vec![]));
    assert!(large.refusal("graph", named("net/links edges")).contains("no incoming edges"));
    for wrong in ["zz", "ff", "0000"] {
        let params = Params { key: wrong.into(), ..named("net/links edges.incoming") };
        assert!(!large.refusal("graph", params).is_empty(), "{wrong}");
    }
}

#[test]
fn edges_are_cut_and_an_undirected_loop_is_shown_once() {
    let store = Metered::new(Memory::new());
    let schema = Schema::open(&store, "net").unwrap();
    let links = Graph::<u32>::undirected(&schema, "links").unwrap();
    let edges = (0..2_000_u32).map(|n| ((1_000, "link".to_owned(), n), ()));
    store.transact(|txn| links.put_edges(txn, edges.clone())).unwrap();
    let large = Large::of(store);
    let found = large.view("graph", of_vertex("1000"));
    assert_eq!(found["directed"], false);
    for (side, more) in [("out", "more_out"), ("in", "more_in")] {
        assert_eq!((ends(&found, side).len(), &found[more]), (40, &true.into()));
    }
    let all = ["out", "in"].map(|side| ends(&found, side)).concat();
    assert_eq!(all.iter().filter(|(_, other, _)| other == "1000").count(), 1);
}

#[test]
fn hostile_vertices_are_found_and_escaped() {
    let store = Metered::new(Memory::new());
    let schema = Schema::open(&store, "net").unwrap();
    let links = Graph::<String>::directed(&schema, "links").unwrap();
    let ids = ["", "<b>&", "a\0\u{1b}b", "\"), (\"", &"x".repeat(200)].map(str::to_owned);
    for (id, next) in ids.iter().zip(ids.iter().cycle().skip(1)) {
        store.transact(|txn| links.put_edge(txn, id, "<i>\n", next, &())).unwrap();
    }
    let large = Large::of(store);
    for (id, next) in ids.iter().zip(ids.iter().cycle().skip(1)) {
        let name = |id: &String| shown::element(&keyloom::key::Element::Str(id.clone()));
        let found = large.view("graph", of_vertex(&name(id)));
        assert_eq!(found["vertex"], name(id));
        let [(label, other, _)] = &ends(&found, "out")[..] else { panic!("{found}") };
        assert_eq!((&**label, other), ("<i>\\n", &name(next)));
    }
}
