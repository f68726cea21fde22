//! The neighbourhood of a vertex: its outgoing and incoming edges.

use keyloom::key::{Element, List, elements, pack};
use keyloom::{AnySnapshot, Order, Reader, Store};
use serde_json::{Value, json};

use super::browse::row;
use super::params::{Params, id};
use super::site::Site;
use crate::catalog::{Catalog, Part};
use crate::edges::{Edges, End, KIND, ends};
use crate::failure::{Failure, Result};
use crate::selection::element_or_text;
use crate::shown;

/// The edges of each direction that are shown.
const MOST_EDGES: usize = 40;

/// The edges of a vertex; without one, of the source of the first edge.
pub fn graph(site: &Site, params: &Params) -> Result<Value> {
    let (catalog, _) = Catalog::with_faults(&site.store);
    let mirror = catalog.require(&params.name)?;
    if mirror.kind != KIND {
        return Err(Failure::new(format!("{:?} holds no incoming edges", params.name)));
    }
    let edges = Edges::of(&catalog, mirror);
    let edges = edges.ok_or_else(|| Failure::new("the incoming edges have no table"))?;
    let snapshot = site.store.snapshot()?;
    let vertex = match of_params(params)? {
        Some(vertex) => Some(vertex),
        None => snapshot
            .first(edges.table.space.self_and_children())?
            .and_then(|(key, _)| ends(&edges.table.space, &key))
            .map(|[source, ..]| source),
    };
    let Some(vertex) = vertex else {
        return Ok(json!({"name": id(mirror), "table": id(edges.table), "vertex": null}));
    };
    let view = View { snapshot: &snapshot, catalog: &catalog, vertex: &vertex };
    let (out, has_more_out) = view.side(&edges, End::Source)?;
    let (of_others, has_more_in) = view.side(&edges, End::Target)?;
    Ok(json!({
        "name": id(mirror), "table": id(edges.table), "vertex": shown::element(&vertex),
        "vertex_hex": shown::hex(&pack(&vertex)),
        "directed": edges.is_directed(), "record": view.properties(edges.table)?,
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
        typed => Ok(Some(element_or_text(typed))),
    }
}

/// A vertex in a snapshot.
struct View<'v> {
    snapshot: &'v AnySnapshot<'v>,
    catalog: &'v Catalog,
    vertex: &'v Element,
}

impl View<'_> {
    /// The edges with the vertex at one end, and whether there are more.
    fn side(&self, edges: &Edges<'_>, end: End) -> Result<(Vec<Value>, bool)> {
        let range = edges.range(end, self.vertex);
        let page = self.snapshot.page(range, Order::Ascending, MOST_EDGES)?;
        let shown = page.entries.iter().filter_map(|(key, value)| {
            let edge = edges.read(end, self.vertex, key, value)?;
            let mut row = row(self.catalog, &edge.key, &edge.value);
            if let Value::Object(fields) = &mut row {
                fields.insert("label".into(), json!(readable(&edge.label)));
                fields.insert("other".into(), json!(shown::element(&edge.other)));
                fields.insert("other_hex".into(), json!(shown::hex(&pack(&edge.other))));
            }
            Some(row)
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
