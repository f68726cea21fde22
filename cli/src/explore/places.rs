//! Points of a spatial index on a map: a sample, or the entries in a box.

mod boxed;
mod sample;

use keyloom::{KeyRange, Reader, Store};
use serde_json::{Value, json};

use super::params::{Params, hex, id};
use super::site::Site;
use crate::catalog::Catalog;
use crate::failure::{Failure, Result};
use crate::points::{Group, Place};
use crate::shown;

/// The kind of an index of points, as the schema stores it.
pub const KIND: &str = "points";

/// A sample of the points of one group, or the points in a box.
pub fn places(site: &Site, params: &Params) -> Result<Value> {
    let (catalog, _) = Catalog::with_faults(&site.store);
    let index = catalog.require(&params.name)?;
    if index.kind != KIND {
        return Err(Failure::new(format!("{:?} is not an index of points", params.name)));
    }
    let snapshot = site.store.snapshot()?;
    let all = index.space.self_and_children();
    let group = match params.group.is_empty() {
        false => Group::of_bytes(&index.space, hex("group", &params.group)?)?,
        true => match snapshot.first(all.clone())? {
            None => Group::default_of(&index.space),
            Some((key, _)) => Place::read(&index.space, &key)
                .map_or_else(|| Group::default_of(&index.space), |(group, _)| group),
        },
    };
    // Without leading parts, all entries are in one group.
    let next = match group.bytes.is_empty() {
        true => None,
        false => snapshot.first(all.intersect(KeyRange::behind(group.space.prefix())))?,
    };
    let next = next.and_then(|(key, _)| Place::read(&index.space, &key)).map(|(group, _)| group);
    let (points, is_complete, area) = match params.area.is_empty() {
        true => {
            let (points, is_complete) = sample::sample(&snapshot, &index.space, &group)?;
            (points.iter().map(Place::shown).collect(), is_complete, Value::Null)
        }
        false => {
            (Vec::new(), false, boxed::boxed(&snapshot, &catalog, index, &group, &params.area)?)
        }
    };
    Ok(json!({
        "name": id(index), "group": group.shown(), "group_hex": shown::hex(&group.bytes),
        "next_group": next.map(|next| json!({"name": next.shown(), "hex": shown::hex(&next.bytes)})),
        "points": points, "complete": is_complete, "box": area,
    }))
}
