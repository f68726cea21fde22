//! The records that an index leads to, in its order.

use keyloom::{Order, Reader};
use serde_json::json;

use super::At;
use super::listing::{Hit, Record, list};
use crate::failure::Result;
use crate::indexed::record_keys;
use crate::output::Output;
use crate::selection::Selection;
use crate::shown;

/// Lists the records of the entries that a tuple selects.
pub fn run(at: &At<'_>, out: &mut Output) -> Result {
    let selection = Selection::within(at.part, at.args.query.as_deref())?;
    let order = if at.args.reverse { Order::Descending } else { Order::Ascending };
    let entries = at.snapshot.range(selection.range.clone(), order)?;
    let hits = entries.filter_map(|entry| match entry {
        Ok((key, _)) if !selection.has(&key) => None,
        Ok((key, value)) => {
            let record = Record::AtOneOf(record_keys(&at.part.space, at.table, (&key, &value)));
            let from = shown::key(&key);
            let fields = json!({"entry": from});
            Some(Ok(Hit { from, record, text: String::new(), fields }))
        }
        Err(error) => Some(Err(error.into())),
    });
    let nothing =
        "there is no such entry; `keyloom scan` of the index shows the types of its parts";
    list(at, out, hits, nothing)
}
