//! The bitmaps of an inverted index: its fields, the values of a field, and the containers of a
//! value.

mod container;

use keyloom::key::{Element, List, elements, pack};
use keyloom::{AnySnapshot, KeyRange, Order, Reader, Store, Subspace};
use serde_json::{Value, json};

use super::params::{Params, hex, id};
use super::site::Site;
use crate::catalog::Catalog;
use crate::failure::{Failure, Result};
use crate::shown;

use container::CHUNK_IDS;

/// The largest number of fields of values that are listed. At most twice as many fields are listed
/// in total. Each costs the read of one key.
const MOST_FIELDS: usize = 10;
/// The values of a page, and the containers that are read to count the ids of each.
const MOST_VALUES: usize = 8;
const COUNTED: usize = 3;
/// The containers of a page.
const MOST_CONTAINERS: usize = 24;

/// The bitmaps of an index. With a field, its values; with a value, or a field of integers, its
/// containers; without a field, the containers of all ids.
pub fn bitmaps(site: &Site, params: &Params) -> Result<Value> {
    let (catalog, _) = Catalog::with_faults(&site.store);
    let part = catalog.require(&params.name)?;
    let space = match part.kind.as_str() {
        "inverted index" => part.space.clone(),
        // A text index has an inverted index of its records.
        "text index" => part.space.child(&0),
        _ => return Err(Failure::new(format!("{:?} is not an inverted index", params.name))),
    };
    let snapshot = site.store.snapshot()?;
    let view = View { snapshot: &snapshot, space, params };
    let (fields, has_more_fields) = view.fields()?;
    let is_integers = view.is_integers(&params.field)?;
    let (values, next_value) = match params.field.is_empty() || is_integers {
        true => (Vec::new(), None),
        false => view.values()?,
    };
    let chosen = match (params.field.is_empty(), is_integers, params.value.is_empty()) {
        (true, ..) => Some(view.space.child("all")),
        (false, true, _) => Some(view.space.child("integers").child(&params.field)),
        (false, false, false) => Some(view.of_value(&hex("value", &params.value)?)),
        (false, false, true) => None,
    };
    let (containers, next) = match &chosen {
        Some(space) => view.containers(space, is_integers)?,
        None => (Vec::new(), None),
    };
    Ok(json!({
        "name": id(part), "table": catalog.table_of(part).map(id), "fields": fields,
        "more_fields": has_more_fields, "field": params.field, "is_integers": is_integers,
        "values": values, "next_value": next_value, "chunks": view.chunks()?,
        "is_chosen": chosen.is_some(), "containers": containers, "next": next,
    }))
}

/// The bitmaps in a snapshot.
struct View<'v> {
    snapshot: &'v AnySnapshot<'v>,
    space: Subspace,
    params: &'v Params,
}

impl View<'_> {
    /// Whether a field has the slices of integers.
    fn is_integers(&self, field: &str) -> Result<bool> {
        let slices = self.space.child("integers").child(field);
        Ok(!field.is_empty() && self.snapshot.first(slices.self_and_children())?.is_some())
    }

    /// The fields, and whether there are more.
    fn fields(&self) -> Result<(Vec<Value>, bool)> {
        let (mut fields, has_more) = self.fields_of_values()?;
        let all = self.space.child("integers").self_and_children();
        let mut rest = all.clone();
        while let Some((key, _)) = self.snapshot.first(rest)? {
            let name = field_of(&self.space.child("integers"), &key);
            let name = name.ok_or_else(|| Failure::new("a key of integers is not readable"))?;
            if fields.len() == 2 * MOST_FIELDS {
                return Ok((fields, true));
            }
            rest = behind(&all, &self.space.child("integers").child(&name));
            fields.push(field(&name, None));
        }
        Ok((fields, has_more))
    }

    /// The fields of values, and whether there are more. The key of a counter contains the name of
    /// each field.
    fn fields_of_values(&self) -> Result<(Vec<Value>, bool)> {
        let space = self.space.child("containers");
        let range = space.self_and_children();
        let page = self.snapshot.page(range, Order::Ascending, MOST_FIELDS)?;
        let fields = page.entries.iter().filter_map(|(key, value)| {
            let name = field_of(&space, key)?;
            // A store keeps counters as integers of 8 bytes, little-endian.
            Some(field(&name, Some((&**value).try_into().map_or(0, i64::from_le_bytes))))
        });
        Ok((fields.collect(), page.last.is_some()))
    }

    /// The containers of a value, given by its packed parts.
    fn of_value(&self, value: &[u8]) -> Subspace {
        let field = self.space.child("terms").child(&self.params.field);
        Subspace::from_bytes(&[field.prefix(), value].concat())
    }

    /// A page of the values of the field with their numbers of ids, and the last value of the page
    /// if there are more.
    fn values(&self) -> Result<(Vec<Value>, Option<String>)> {
        let field = self.space.child("terms").child(&self.params.field);
        let all = field.self_and_children();
        let mut rest = match self.params.after()? {
            Some(last) => behind(&all, &self.of_value(&last)),
            None => all.clone(),
        };
        let (mut values, mut last) = (Vec::new(), None);
        // One seek for each value: a walk would read all containers of a frequent value.
        while let Some((key, _)) = self.snapshot.first(rest)? {
            if values.len() == MOST_VALUES {
                return Ok((values, last));
            }
            let own = value_of(&field, &key);
            let own = own.ok_or_else(|| Failure::new("the keys of the field are not readable"))?;
            let space = self.of_value(&own);
            values.push(self.counted(&own, &space)?);
            rest = behind(&all, &space);
            last = Some(shown::hex(&own));
        }
        Ok((values, None))
    }

    /// A value, with the ids of its first containers.
    fn counted(&self, own: &[u8], space: &Subspace) -> Result<Value> {
        let page = self.snapshot.page(space.self_and_children(), Order::Ascending, COUNTED)?;
        let containers = page.entries.iter().filter_map(|(_, value)| container::container(value));
        let ids: u64 = containers.map(|one| one.ids).sum();
        let name = match elements(own).as_deref() {
            Ok([Element::Null]) => "none".to_owned(),
            Ok([one]) => shown::element(one),
            _ => shown::key(own),
        };
        Ok(json!({
            "value": name, "hex": shown::hex(own), "ids": ids, "containers": page.entries.len(),
            "more": page.last.is_some(),
        }))
    }

    /// A page of containers, and the last key of the page if there are more.
    fn containers(
        &self,
        space: &Subspace,
        is_integers: bool,
    ) -> Result<(Vec<Value>, Option<String>)> {
        let mut range = space.self_and_children();
        if !self.params.last.is_empty() {
            let last = hex("last", &self.params.last)?;
            range = range.resume(Order::Ascending, &last).into_owned();
        }
        let page = self.snapshot.page(range, Order::Ascending, MOST_CONTAINERS)?;
        let shown = page.entries.iter().map(|(key, value)| {
            let place = place(space, key, is_integers);
            let read = container::container(value);
            let form = read.as_ref().map_or("damaged", |one| one.form);
            let buckets = read.as_ref().map(|one| one.buckets.to_vec()).unwrap_or_default();
            json!({
                "key": shown::key(key), "key_hex": shown::hex(key), "form": form,
                "chunk": place.map(|(chunk, _)| chunk), "slice": place.and_then(|(_, slice)| slice),
                "first": place.map(|(chunk, _)| chunk.saturating_mul(CHUNK_IDS)),
                "ids": read.map(|one| one.ids), "bytes": value.len(), "buckets": buckets,
            })
        });
        Ok((shown.collect(), page.last.as_ref().map(|last| shown::hex(last))))
    }

    /// The number of chunks up to the last with an id.
    fn chunks(&self) -> Result<u64> {
        let all = self.space.child("all");
        let last = self.snapshot.last(all.self_and_children())?;
        let chunk = last.and_then(|(key, _)| place(&all, &key, false));
        Ok(chunk.map_or(0, |(chunk, _)| chunk.saturating_add(1)))
    }
}

/// A field as JSON. Only a field of values has a number of containers.
fn field(name: &str, containers: Option<i64>) -> Value {
    json!({
        "name": name, "shown": name.escape_debug().to_string(), "containers": containers,
        "is_integers": containers.is_none(),
    })
}

/// The name of the field at the beginning of a key.
fn field_of(space: &Subspace, key: &[u8]) -> Option<String> {
    match elements(key.strip_prefix(space.prefix())?).ok()?.into_iter().next()? {
        Element::Str(name) => Some(name),
        _ => None,
    }
}

/// The keys of `all` after those of a value or a field.
fn behind(all: &KeyRange<'static>, value: &Subspace) -> KeyRange<'static> {
    all.clone().intersect(KeyRange::behind(value.prefix()).into_owned())
}

/// The packed parts of the value in the key of a container.
fn value_of(field: &Subspace, key: &[u8]) -> Option<Vec<u8>> {
    let parts = elements(key.strip_prefix(field.prefix())?).ok()?;
    let (_chunk, value) = parts.split_last()?;
    (!value.is_empty()).then(|| pack(&List(value)).to_vec())
}

/// The chunk in the key of a container, and the slice of a field of integers.
fn place(space: &Subspace, key: &[u8], is_integers: bool) -> Option<(u64, Option<u64>)> {
    let parts = elements(key.strip_prefix(space.prefix())?).ok()?;
    let number = |one: &Element| match one {
        Element::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    };
    match &parts[..] {
        [chunk] if !is_integers => Some((number(chunk)?, None)),
        [chunk, slice] if is_integers => Some((number(chunk)?, Some(number(slice)?))),
        _ => None,
    }
}
