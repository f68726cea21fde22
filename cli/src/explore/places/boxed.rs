//! The entries in a box, and the parts of the curve that a query of the box reads.

use keyloom::{AnySnapshot, Order, Reader, Subspace};
use keyloom_kit::within;
use keyloom_spatial::{Area, BoundingBox, CellBounds, CellRelation, CoverPart, LatLng, PointIndex};
use serde_json::{Value, json};

use crate::catalog::{Catalog, Part};
use crate::explore::browse::beside;
use crate::failure::{Failure, Result};
use crate::indexed::{Entry, Joined};
use crate::points::{Group, Place, bounding_box};

/// The ranges of the query: the default of a query that has read some hundred keys.
const RANGES: usize = 16;
/// The entries that are read. Entries across the border of the box may be outside.
const MOST_KEYS: usize = 50;
/// The entries that are listed, each with its record.
const MOST_ENTRIES: usize = 40;
/// The cells that are drawn.
const MOST_CELLS: usize = 800;

/// The entries of a group in a box, with their records, and the cover of the box.
pub fn boxed(
    snapshot: &AnySnapshot<'_>,
    catalog: &Catalog,
    index: &Part,
    group: &Group,
    area: &str,
) -> Result<Value> {
    let area = bounding_box(area)?;
    let cover = cover(&index.space, area)?;
    let found = Found::read(snapshot, index, group, &cover, area)?;
    let table = catalog.table_of(index).ok_or_else(|| Failure::new("the index has no table"))?;
    let is_behind = catalog.is_behind(snapshot, index)?;
    let entries: Vec<Entry<'_>> =
        found.entries.iter().map(|(place, value)| (&place.key[..], &value[..])).collect();
    let joined = Joined::read(snapshot, &index.space, table, &entries)?;
    let rows = found.entries.iter().zip(&joined).map(|((place, _), one)| {
        json!({"place": place.shown(), "record": beside(catalog, one, is_behind)})
    });
    Ok(json!({
        "bounds": [area.south(), area.west(), area.north(), area.east()],
        "entries": rows.collect::<Vec<_>>(), "keys_read": found.keys_read, "more": found.has_more,
        "ranges": cover.last().map_or(0, |part| part.range() + 1), "cells": cells(&cover),
    }))
}

/// The parts of the curve that a query reads. They depend on the box alone, so the types of the
/// program are not needed.
fn cover(index: &Subspace, area: BoundingBox) -> Result<Vec<CoverPart>> {
    let points = PointIndex::<u64, ()>::new(index, |_, ()| Ok(None));
    Ok(points.within(area).in_ranges(RANGES)?.cover_parts())
}

/// The cells of the cover: south, west, north, east, and the relation to the box.
fn cells(cover: &[CoverPart]) -> Vec<Value> {
    let of_part = |part: &CoverPart| {
        let relation = match part.relation() {
            CellRelation::Inside => "inside",
            CellRelation::Across => "across",
            CellRelation::Outside => "gap",
        };
        let range = part.range();
        part.cells().map(move |cell| {
            let CellBounds { south, west, north, east } = cell.bounds();
            json!({"range": range, "relation": relation, "bounds": [south, west, north, east]})
        })
    };
    cover.iter().flat_map(of_part).take(MOST_CELLS).collect()
}

/// The entries of a box.
struct Found {
    entries: Vec<(Place, Vec<u8>)>,
    keys_read: usize,
    has_more: bool,
}

impl Found {
    fn read(
        snapshot: &AnySnapshot<'_>,
        index: &Part,
        group: &Group,
        cover: &[CoverPart],
        area: BoundingBox,
    ) -> Result<Self> {
        let mut found = Self { entries: Vec::new(), keys_read: 0, has_more: false };
        // A gap within a range has no entries in the box.
        for part in cover.iter().filter(|part| part.relation() != CellRelation::Outside) {
            let range = within(part.codes()).key_range(&group.space);
            for entry in snapshot.range(range, Order::Ascending)? {
                let (key, value) = entry?;
                found.keys_read += 1;
                let most = found.keys_read > MOST_KEYS || found.entries.len() == MOST_ENTRIES;
                if most {
                    found.has_more = true;
                    return Ok(found);
                }
                let place = Place::read(&index.space, &key).map(|(_, place)| place);
                found.entries.extend(
                    place.filter(|one| is_inside(one, area)).map(|one| (one, value.to_vec())),
                );
            }
        }
        Ok(found)
    }
}

fn is_inside(place: &Place, area: BoundingBox) -> bool {
    LatLng::new(place.latitude, place.longitude).is_ok_and(|position| area.contains(&position))
}
