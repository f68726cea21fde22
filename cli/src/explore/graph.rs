//! The neighbourhood of a vertex: its outgoing and incoming edges.

use keyloom::key::{Element, List, elements, pack};
use keyloom::{AnySnapshot, Order, Reader, Store, Subspace};
use serde_json::{Value, json};

use super::api::{Params, id};
use super::browse::row;
use super::server::Site;
use crate::catalog::{Catalog, Part};
use crate::failure::{Failure, Result};
use crate::selection::one_key;
use crate::shown;

/// The kind of the mirrored edges, as the schema stores it.
pub const KIND: &str = "incoming edges";
/// The first byte of a mirrored edge.
const FORMAT: u8 = 1;
/// The edges of each direction that are shown.
const MOST_EDGES: usize = 40;

/// The edges of a vertex; without one, of the source of the first edge.
pub fn graph(site: &Site, params: &Params) -> Result<Value> {
    let (catalog, _) = Catalog::with_faults(&site.store);
    let incoming = catalog.require(&params.name)?;
    if incoming.kind != KIND {
        return Err(Failure::new(format!("{:?} holds no incoming edges", params.name)));
    }
    let edges = catalog.table_of(incoming);
    let edges = edges.ok_or_else(|| Failure::new("the incoming edges have no table"))?;
    let snapshot = site.store.snapshot()?;
    let vertex = match of_params(params)? {
        Some(vertex) => Some(vertex),
        None => snapshot
            .first(edges.space.self_and_children())?
            .and_then(|(key, _)| ends(&edges.space, &key))
            .map(|[source, ..]| source),
    };
    let Some(vertex) = vertex else {
        return Ok(json!({"name": id(incoming), "table": id(edges), "vertex": null}));
    };
    let view = View { snapshot: &snapshot, catalog: &catalog, vertex: &vertex };
    let (out, has_more_out) = view.side(edges, edges)?;
    let (of_others, has_more_in) = view.side(incoming, edges)?;
    Ok(json!({
        "name": id(incoming), "table": id(edges), "vertex": shown::element(&vertex),
        "vertex_hex": shown::hex(&pack(&vertex)),
        "directed": !is_undirected(incoming), "record": view.properties(edges)?,
        "out": out, "more_out": has_more_out, "in": of_others, "more_in": has_more_in,
    }))
}

/// The vertex that the parameters name.
fn of_params(params: &Params) -> Result<Option<Element>> {
    if !params.key.is_empty() {
        let failed = || Failure::new("key holds a vertex: one element, packed");
        let packed = elements(&params.key()?).map_err(|_| failed())?;
        return <[Element; 1]>::try_from(packed).map(|[one]| Some(one)).map_err(|_| failed());
    }
    match params.vertex.trim() {
        "" => Ok(None),
        typed => Ok(Some(of_text(typed))),
    }
}

/// The element that a text denotes in the language of keys; otherwise, the text as a string.
fn of_text(text: &str) -> Element {
    let parsed = one_key(text).ok().and_then(|key| elements(&key).ok());
    match parsed {
        None => Element::Str(text.to_owned()),
        // A vertex of several elements is one nested tuple in the key of an edge.
        Some(all) => match <[Element; 1]>::try_from(all) {
            Ok([one]) => one,
            Err(all) => Element::Tuple(all),
        },
    }
}

/// The three elements after the subspace: one end, the label, the other end.
fn ends(space: &Subspace, key: &[u8]) -> Option<[Element; 3]> {
    elements(key.strip_prefix(space.prefix())?).ok()?.try_into().ok()
}

fn is_undirected(incoming: &Part) -> bool {
    incoming.options == "undirected"
}

/// A vertex in a snapshot.
struct View<'v> {
    snapshot: &'v AnySnapshot<'v>,
    catalog: &'v Catalog,
    vertex: &'v Element,
}

impl View<'_> {
    /// The edges of one direction, and whether there are more. `part` is the table of edges, or the
    /// mirror of it.
    fn side(&self, part: &Part, edges: &Part) -> Result<(Vec<Value>, bool)> {
        let range = part.space.range_of(self.vertex);
        let page = self.snapshot.page(range, Order::Ascending, MOST_EDGES)?;
        let shown = page.entries.iter().filter_map(|(key, value)| {
            let [_, label, other] = ends(&part.space, key)?;
            let mut edge = match part.kind == KIND {
                // An undirected loop is an outgoing edge already.
                true if is_undirected(part) && other == *self.vertex => return None,
                // The mirror stores a format byte before the properties of the edge.
                true => {
                    let own = [&other, &label, self.vertex].map(Clone::clone);
                    let edge_key = edges.space.pack(&List(&own[..]));
                    row(self.catalog, &edge_key, value.strip_prefix(&[FORMAT])?)
                }
                false => row(self.catalog, key, value),
            };
            if let Value::Object(fields) = &mut edge {
                fields.insert("label".into(), json!(readable(&label)));
                fields.insert("other".into(), json!(shown::element(&other)));
                fields.insert("other_hex".into(), json!(shown::hex(&pack(&other))));
            }
            Some(edge)
        });
        Ok((shown.collect(), page.last.is_some()))
    }

    /// The record of the vertex in the table of vertices, if it has one.
    fn properties(&self, edges: &Part) -> Result<Value> {
        let name = edges.name.strip_suffix(" edges").map(|name| format!("{name} vertices"));
        let vertices = name.and_then(|name| self.catalog.table(&edges.schema, &name));
        let Some(vertices) = vertices else { return Ok(Value::Null) };
        // As the key of a record, a tuple is not nested.
        let own = match self.vertex {
            Element::Tuple(all) => pack(&List(&all[..])),
            one => pack(one),
        };
        let key = [vertices.space.prefix(), &own].concat();
        let value = self.snapshot.get(&key)?;
        Ok(value.map_or(Value::Null, |value| row(self.catalog, &key, &value)))
    }
}

/// A label as text.
fn readable(label: &Element) -> String {
    match label {
        Element::Str(text) => text.escape_debug().to_string(),
        other => shown::element(other),
    }
}
