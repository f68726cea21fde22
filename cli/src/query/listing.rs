//! The records that a query has found, as lines of the output.

use keyloom::Reader;
use serde_json::{Map, Value, json};

use super::At;
use crate::failure::Result;
use crate::output::{Output, note};
use crate::shown;
use crate::style::{Role, paint};

/// The records that are read in one round trip.
const PAGE: usize = 200;

/// Where a record is.
#[cfg_attr(not(feature = "explore"), expect(dead_code, reason = "only an index can be queried"))]
pub enum Record {
    /// At the first of these keys that exists.
    AtOneOf(Vec<Vec<u8>>),
    /// This key and its value, which the query has read.
    Read(Vec<u8>, Vec<u8>),
}

/// A record that a query has found.
pub struct Hit {
    /// The entry that leads to the record, for messages.
    pub from: String,
    pub record: Record,
    /// What the query has found besides the record, as text.
    pub text: String,
    /// The same as JSON.
    pub fields: Value,
}

/// Lists at most as many records as the command line allows. If there are more, a note says so; if
/// there are none, `nothing` is the note.
pub fn list(
    at: &At<'_>,
    out: &mut Output,
    hits: impl IntoIterator<Item = Result<Hit>>,
    nothing: &str,
) -> Result {
    let (mut hits, mut left) = (hits.into_iter(), at.args.limit);
    let mut is_empty = true;
    while left > 0 {
        let page: Vec<Hit> = hits.by_ref().take(left.min(PAGE)).collect::<Result<_>>()?;
        if page.is_empty() {
            break;
        }
        is_empty = false;
        left -= page.len();
        print_page(at, out, page)?;
    }
    if left == 0 && hits.next().transpose()?.is_some() {
        note(&format!("there are more than {} records; -n lists more", at.args.limit));
    } else if is_empty && at.args.limit > 0 {
        note(nothing);
    }
    Ok(())
}

fn print_page(at: &At<'_>, out: &mut Output, page: Vec<Hit>) -> Result {
    let keys = page.iter().flat_map(|hit| match &hit.record {
        Record::AtOneOf(keys) => keys.as_slice(),
        Record::Read(..) => &[],
    });
    let keys: Vec<&Vec<u8>> = keys.collect();
    let mut values = match keys.is_empty() {
        true => Vec::new(),
        false => at.snapshot.get_many(&keys)?,
    }
    .into_iter();
    for hit in &page {
        match &hit.record {
            Record::Read(key, value) => print(at, out, hit, key, value)?,
            Record::AtOneOf(keys) => {
                let found: Vec<_> = keys.iter().zip(values.by_ref().take(keys.len())).collect();
                match found.into_iter().find_map(|(key, value)| Some((key, value?))) {
                    Some((key, value)) => print(at, out, hit, key, &value)?,
                    None => {
                        note(&format!("{} leads to no record; see `keyloom check`", hit.from));
                    }
                }
            }
        }
    }
    Ok(())
}

fn print(at: &At<'_>, out: &mut Output, hit: &Hit, key: &[u8], value: &[u8]) -> Result {
    let shown = at.format().show(value, Some(at.table));
    let key = shown::key(key);
    let text = || {
        let space = if hit.text.is_empty() { "" } else { "  " };
        let found = shown::printable(&hit.text);
        format!("{found}{space}{} = {}", paint(Role::Name, &key), shown.text)
    };
    let object = || {
        let record = json!({
            "key": key, "value": shown.text, "form": shown.form, "bytes": value.len(),
            "cut": shown.is_cut,
        });
        joined(hit.fields.clone(), record)
    };
    out.either(object, text)
}

/// The fields of both objects.
fn joined(a: Value, b: Value) -> Value {
    let fields = |one| match one {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    fields(a).into_iter().chain(fields(b)).collect::<Map<_, _>>().into()
}
