//! The records in a box, or around a position.

use keyloom::Reader;
use keyloom::key::{Element, List, elements, pack};
use keyloom_spatial::{Circle, ExtentIndex, LatLng, PointIndex};
use keyloom_tables::index::Found;
use serde_json::json;

use super::At;
use super::listing::{Hit, Record, list};
use crate::failure::{Failure, Result};
use crate::indexed::keys_of;
use crate::output::Output;
use crate::points::{Group, bounding_box};
use crate::selection::one_key;
use crate::shown;

const FORMS: &str = "a place is a box south,west,north,east such as 51.2,-0.5,51.7,0.3, a circle such as 51.5,-0.1,10km, or a position such as 51.5,-0.1";
const WORLD: &str = "-90,-180,90,180";
const NOTHING: &str = "there is no record at this place";

/// Lists the points of a group in a box, in a circle, or by their distance from a position.
pub fn points(at: &At<'_>, out: &mut Output) -> Result {
    let group = group(at, 4)?;
    // The entries of a group have the layout of an index without groups.
    let points = PointIndex::<Element, ()>::new(&group.space, |_, ()| Ok(None));
    let query = at.query().unwrap_or(WORLD);
    let found = |point: &Found<_, Element>, position: LatLng, distance| {
        hit(at, point.entry_key(), point.packed_record_key(), (position, distance))
    };
    if query.split(',').count() == 4 {
        let walk = points.within(bounding_box(query)?).points(at.snapshot)?;
        let hits = walk.map(|point| {
            let point = point?;
            Ok(found(point.entry(), point.position(), None))
        });
        return list(at, out, hits, NOTHING);
    }
    let (centre, radius) = around(query)?;
    let area = Circle::new(centre, radius)?;
    let hits = points.within(area).by_distance(at.snapshot, centre)?.map(|point| {
        let point = point?;
        Ok(found(point.entry(), point.position(), Some(point.distance())))
    });
    list(at, out, hits, NOTHING)
}

fn hit(at: &At<'_>, entry: &[u8], record: &[u8], place: (LatLng, Option<f64>)) -> Hit {
    let (position, distance) = place;
    let (latitude, longitude) = (position.latitude(), position.longitude());
    let metres = distance.map(|metres| format!("  {}", readable(metres))).unwrap_or_default();
    let from = shown::key(entry);
    let mut fields = json!({"entry": from, "latitude": latitude, "longitude": longitude});
    if let (Some(metres), Some(fields)) = (distance, fields.as_object_mut()) {
        fields.insert("metres".into(), json!(metres));
    }
    Hit {
        from,
        record: Record::AtOneOf(keys_of(at.table, record)),
        text: format!("{latitude},{longitude}{metres}"),
        fields,
    }
}

fn readable(metres: f64) -> String {
    if metres < 1_000.0 { format!("{metres:.0} m") } else { format!("{:.1} km", metres / 1_000.0) }
}

/// Lists the records of a group whose extents overlap a box or contain a position.
pub fn extents(at: &At<'_>, out: &mut Output) -> Result {
    let group = group(at, 2)?;
    let extents = ExtentIndex::<Element, ()>::new(&group.space, |_, ()| Ok(None));
    let query = at.query().unwrap_or(WORLD);
    let search = match numbers(query).as_deref() {
        Some([latitude, longitude]) => extents.containing(LatLng::new(*latitude, *longitude)?),
        Some([_, _, _, _]) => extents.overlapping(bounding_box(query)?),
        _ => {
            return Err(Failure::new(format!(
                "{query:?} is neither a box south,west,north,east such as 51.2,-0.5,51.7,0.3 nor a position such as 51.5,-0.1"
            )));
        }
    };
    let hits = search.extents(at.snapshot)?.map(|extent| {
        let extent = extent?;
        let bounds = extent.bounds();
        let sides = [bounds.south(), bounds.west(), bounds.north(), bounds.east()];
        let from = shown::key(extent.entry().entry_key());
        Ok(Hit {
            record: Record::AtOneOf(keys_of(at.table, extent.entry().packed_record_key())),
            text: sides.map(|side| side.to_string()).join(","),
            fields: json!({"entry": from, "bounds": sides}),
            from,
        })
    });
    list(at, out, hits, NOTHING)
}

/// The group that the command line names. Without a name, the entries must not have groups: then
/// they have `own` elements after the prefix of the index.
fn group(at: &At<'_>, own: usize) -> Result<Group> {
    let space = &at.part.space;
    if let Some(group) = &at.args.group {
        return Group::of_bytes(space, one_key(group)?.to_vec());
    }
    let first = at.snapshot.first(space.self_and_children())?;
    let parts = first.and_then(|(key, _)| {
        let mut parts = elements(key.strip_prefix(space.prefix())?).ok()?;
        parts.truncate(parts.len().checked_sub(own)?);
        Some(parts)
    });
    match parts.unwrap_or_default().as_slice() {
        [] => Ok(Group::default_of(space)),
        parts => Err(Failure::new(format!(
            "the index {:?} has groups; name one, such as --group '{}'",
            at.part.name,
            shown::key(&pack(&List(parts)))
        ))),
    }
}

/// The numbers of a text, if it consists only of numbers and commas.
fn numbers(text: &str) -> Option<Vec<f64>> {
    text.split(',').map(|one| one.trim().parse().ok()).collect()
}

/// The centre and the radius in metres of a circle. A position without a radius stands for a circle
/// that contains everything.
fn around(text: &str) -> Result<(LatLng, f64)> {
    let failed = || Failure::new(format!("{text:?} is not a place: {FORMS}"));
    let mut parts = text.split(',').map(str::trim);
    let mut degrees = || parts.next().and_then(|one| one.parse().ok()).ok_or_else(failed);
    let centre = LatLng::new(degrees()?, degrees()?)?;
    let radius = match (parts.next(), parts.next()) {
        (None, _) => HALF_AROUND,
        (Some(radius), None) => metres(radius).ok_or_else(failed)?,
        (Some(_), Some(_)) => return Err(failed()),
    };
    Ok((centre, radius))
}

/// More than half of the circumference of the Earth, in metres.
const HALF_AROUND: f64 = 30_000_000.0;

/// The metres of a text such as `10km` or `500m`.
fn metres(text: &str) -> Option<f64> {
    let (number, unit) = match text.strip_suffix("km") {
        Some(number) => (number, 1_000.0),
        None => (text.strip_suffix('m')?, 1.0),
    };
    Some(number.trim().parse::<f64>().ok()? * unit)
}
