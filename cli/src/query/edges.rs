//! The edges of a vertex.

use keyloom::key::Element;
use keyloom::{KeyRange, Order, Reader};
use serde_json::json;

use super::listing::{Hit, Record, list};
use super::{At, Direction};
use crate::edges::{Edge, Edges, End};
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::selection::element_or_text;
use crate::shown;

/// Lists the edges of a vertex: those that leave it, then those that enter it.
pub fn run(at: &At<'_>, out: &mut Output) -> Result {
    let edges = Edges::of(at.catalog, at.part);
    let edges = edges.ok_or_else(|| Failure::new("the edges have no table"))?;
    let vertex = at.query().ok_or_else(|| {
        Failure::new(format!(
            "a query of a graph needs a vertex, such as ada, \"7\" or 7; `keyloom scan STORE {:?}` lists all edges",
            edges.table.name
        ))
    })?;
    let vertex = element_or_text(vertex);
    let label = at.args.label.clone().map(Element::Str);
    let ends: &[End] = match at.args.direction {
        // An undirected edge is stored in one direction, and mirrored.
        _ if !edges.is_directed() => &[End::Source, End::Target],
        Some(Direction::Out) => &[End::Source],
        Some(Direction::In) => &[End::Target],
        None | Some(Direction::Both) => &[End::Source, End::Target],
    };
    let range = |end| match &label {
        Some(label) => edges.labelled(end, &vertex, label),
        None => edges.range(end, &vertex),
    };
    let hits = ends.iter().flat_map(|&end| read(at, edges, end, &vertex, range(end)));
    let nothing = "the vertex has no such edges; a vertex without quotes is a number if it is one, and otherwise a text: \"7\" is a text";
    list(at, out, hits, nothing)
}

/// The edges with `vertex` at one end. The range is read when the first edge is taken.
fn read<'q>(
    at: &'q At<'q>,
    edges: Edges<'q>,
    end: End,
    vertex: &'q Element,
    range: KeyRange<'static>,
) -> impl Iterator<Item = Result<Hit>> + 'q {
    let (entries, failed) = match at.snapshot.range(range, Order::Ascending) {
        Ok(entries) => (Some(entries), None),
        Err(error) => (None, Some(Err(error.into()))),
    };
    let hits = entries.into_iter().flatten().filter_map(move |entry| match entry {
        Ok((key, value)) => {
            let edge = edges.read(end, vertex, &key, &value)?;
            Some(Ok(hit(vertex, edge, edges.is_directed().then_some(end))))
        }
        Err(error) => Some(Err(error.into())),
    });
    failed.into_iter().chain(hits)
}

/// An edge; `end` is the end of the vertex if the edge has a direction.
fn hit(vertex: &Element, edge: Edge, end: Option<End>) -> Hit {
    let label = match &edge.label {
        Element::Str(text) => text.clone(),
        other => shown::element(other),
    };
    let (vertex, other) = (shown::element(vertex), shown::element(&edge.other));
    let (text, direction) = match end {
        Some(End::Source) => (format!("{vertex} --{label}--> {other}"), "out"),
        Some(End::Target) => (format!("{vertex} <--{label}-- {other}"), "in"),
        None => (format!("{vertex} --{label}-- {other}"), "none"),
    };
    let fields =
        json!({"vertex": vertex, "direction": direction, "label": label, "neighbour": other});
    Hit { from: text.clone(), record: Record::Read(edge.key, edge.value), text, fields }
}
