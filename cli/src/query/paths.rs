//! The records of a path hierarchy, by a pattern of labels.

use keyloom::Order;
use keyloom_kit::in_order;
use keyloom_trees::path::{Lquery, PathPattern, Paths};
use serde_json::json;

use super::At;
use super::listing::{Hit, Record, list};
use crate::failure::{Failure, Result};
use crate::indexed::record_keys;
use crate::output::Output;
use crate::shown;

/// Lists the records whose paths match a pattern.
pub fn run(at: &At<'_>, out: &mut Output) -> Result {
    let query = at.query().unwrap_or("*");
    let pattern: Lquery = query.parse().map_err(|error| {
        Failure::new(format!(
            "{error}; a pattern is labels and *, joined by dots, such as 'usr.*.bin' or 'usr.lib*'; a label with other characters has quotes"
        ))
    })?;
    let pattern = PathPattern::from(pattern);
    let order = if at.args.reverse { Order::Descending } else { Order::Ascending };
    let pattern = in_order(&pattern, order);
    let hits = Paths::new(&at.part.space).matching(at.snapshot, pattern)?.map(|found| {
        let found = found?;
        let path = found.path()?.to_string();
        let keys = record_keys(&at.part.space, at.table, (found.key(), found.value()));
        let from = shown::key(found.key());
        let fields = json!({"entry": from, "path": path});
        Ok(Hit { from, record: Record::AtOneOf(keys), text: path, fields })
    });
    list(at, out, hits, "no path matches; the labels of an index are case-sensitive")
}
