//! Edges, compared with the list of all edges.

use super::contents::{ROADS, edges};
use super::{filled, objects, text};
use crate::support::Directory;

/// The direction, the label, the neighbour and the record.
type Found = (String, String, String, String);

fn found(address: &str, arguments: &[&str]) -> Vec<Found> {
    let all = objects(&[&[address], arguments].concat());
    let of = |one: &serde_json::Value| {
        let [direction, label, other, value] =
            ["direction", "label", "neighbour", "value"].map(|field| text(one, field));
        (direction, label, other, value)
    };
    all.iter().map(of).collect()
}

#[test]
fn a_vertex_has_its_edges_by_direction_and_label() {
    let directory = Directory::new();
    let address = filled(&directory);
    let mut seen = 0;
    for vertex in ["ada", "grace", "jean", "7", "nobody"] {
        // A text of digits needs quotes.
        let query = if vertex == "7" { "\"7\"" } else { vertex };
        for label in [None, Some("knows"), Some("like\u{1b}"), Some("know")] {
            let all = || edges().into_iter().filter(|edge| label.is_none_or(|one| edge.1 == one));
            let mut leaving: Vec<Found> = all()
                .filter(|edge| edge.0 == vertex)
                .map(|(_, label, other, n)| {
                    ("out".into(), label, format!("{other:?}"), n.to_string())
                })
                .collect();
            let mut entering: Vec<Found> = all()
                .filter(|edge| edge.2 == vertex)
                .map(|(other, label, _, n)| {
                    ("in".into(), label, format!("{other:?}"), n.to_string())
                })
                .collect();
            leaving.sort();
            entering.sort();
            let both = [leaving.clone(), entering.clone()].concat();
            seen += both.len();
            for name in ["links edges", "links edges.incoming", "net/links edges"] {
                let of = |direction: &[&str]| {
                    let label = label.map_or(Vec::new(), |label| vec!["--label", label]);
                    found(&address, &[&[name, query], direction, &label[..]].concat())
                };
                assert_eq!(of(&["--direction", "out"]), leaving, "{vertex} {label:?}");
                assert_eq!(of(&["--direction", "in"]), entering, "{vertex} {label:?}");
                assert_eq!(of(&["--direction", "both"]), both, "{vertex} {label:?}");
                assert_eq!(of(&[]), both, "{vertex} {label:?}");
            }
        }
    }
    assert!(seen > edges().len() * 2, "{seen}");
}

#[test]
fn an_undirected_edge_is_found_from_both_ends_once() {
    let directory = Directory::new();
    let address = filled(&directory);
    for vertex in 1..=3 {
        let mut expected: Vec<String> = ROADS
            .iter()
            .filter_map(|(a, b)| match (*a == vertex, *b == vertex) {
                (true, _) => Some(b.to_string()),
                (_, true) => Some(a.to_string()),
                _ => None,
            })
            .collect();
        expected.sort();
        for direction in [&[][..], &["--direction", "in"], &["--direction", "out"]] {
            let vertex = vertex.to_string();
            let edges = found(&address, &[&["roads edges", &*vertex], direction].concat());
            assert!(
                edges.iter().all(|(direction, label, ..)| direction == "none" && label == "road")
            );
            let mut others: Vec<String> = edges.into_iter().map(|edge| edge.2).collect();
            others.sort();
            assert_eq!(others, expected, "{vertex} {direction:?}");
        }
    }
}
