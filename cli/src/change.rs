//! The lines of `keyloom watch`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::catalog::{Catalog, Part};
use crate::failure::{Outcome, Result};
use crate::output::Output;
use crate::queues::now;
use crate::shown;
use crate::style::{Role, paint};
use crate::value::Format;

/// Reports a change: the key, the old value and the new one.
pub type Report<'r> = dyn FnMut(&[u8], Option<&[u8]>, Option<&[u8]>) -> Result + 'r;

/// Prints changes until the end of the command.
pub struct Changes<'c> {
    /// Where the lines are printed.
    pub out: &'c mut Output,
    /// The tables and indexes of the store.
    pub catalog: Catalog,
    /// The form of the values.
    pub format: Format,
    /// The number of changes to print; `None` for all.
    pub left: Option<u64>,
    /// The time when the command ends, if any.
    pub end: Option<Instant>,
}

impl Changes<'_> {
    /// Prints a change at once, unless the command has printed as many as it should.
    pub fn add(&mut self, key: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) -> Result {
        match &mut self.left {
            Some(0) => return Ok(()),
            Some(left) => *left -= 1,
            None => {}
        }
        let (part, format) = (self.catalog.part_of(key), self.format);
        let shown = |value: &[u8]| format.show(value, part).text;
        let key_text = || paint(Role::Name, &shown::key(key));
        let text = || match (old.map(shown), new.map(shown), key_text()) {
            (Some(old), Some(new), key) => format!("~ {key} = {new}, was {old}"),
            (Some(old), None, key) => format!("- {key} = {old}"),
            (None, new, key) => format!("+ {key} = {}", new.unwrap_or_default()),
        };
        let object = || {
            let change = match (old, new) {
                (Some(_), Some(_)) => "changed",
                (Some(_), None) => "removed",
                (None, _) => "added",
            };
            let [old, new] =
                [old, new].map(|value| value.map(|value| object_of(value, part, format)));
            json!({
                "change": change, "key": shown::key(key), "key_hex": shown::hex(key),
                "name": part.map(|part| &part.name), "old": old, "new": new, "time": now(),
            })
        };
        self.out.either(object, text)?;
        self.out.flush()
    }

    /// The time to wait, at most `longest`; `None` at the end of the command.
    pub fn pause(&self, longest: Duration) -> Option<Duration> {
        let left = self.end.map(|end| end.saturating_duration_since(Instant::now()));
        let is_over = self.left == Some(0) || left == Some(Duration::ZERO);
        (!is_over).then(|| left.map_or(longest, |left| left.min(longest)))
    }

    /// Whether there were as many changes as the command should print.
    pub fn outcome(&self) -> Outcome {
        match self.left {
            None | Some(0) => Outcome::Fine,
            Some(_) => Outcome::Different,
        }
    }
}

fn object_of(value: &[u8], part: Option<&Part>, format: Format) -> Value {
    let shown = format.show(value, part);
    json!({
        "value": shown.text, "form": shown.form, "bytes": value.len(), "cut": shown.is_cut,
    })
}
