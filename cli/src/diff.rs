//! `keyloom diff`: which keys differ between two stores?

use std::cmp::Ordering;

use clap::Args;
use keyloom::{KeyRange, Order, Reader, Store};
use serde_json::json;

use crate::address::{Access, open};
use crate::failure::{Failure, Outcome, Result};
use crate::output::Output;
use crate::shown;
use crate::style::{Role, paint};

/// Compares two stores key by key. Ends with status 1 if they differ.
#[derive(Debug, Args)]
pub struct Diff {
    /// A store
    pub a: String,
    /// The store to compare with it
    pub b: String,
    /// Ends after this many differences
    #[arg(long, short = 'n')]
    pub limit: Option<usize>,
}

impl Diff {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let (a, b) = (open(&self.a, Access::Read)?, open(&self.b, Access::Read)?);
        let (a, b) = (a.snapshot()?, b.snapshot()?);
        let mut from = a.range(KeyRange::all(), Order::Ascending)?;
        let mut to = b.range(KeyRange::all(), Order::Ascending)?;
        let (mut old, mut new) = (from.next().transpose()?, to.next().transpose()?);
        let mut left = self.limit.unwrap_or(usize::MAX);
        let mut outcome = Outcome::Fine;
        while left > 0 {
            let order = match (&old, &new) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((old, _)), Some((new, _))) => old[..].cmp(&new[..]),
            };
            let difference = match (&old, &new) {
                (Some((key, _)), _) if order.is_lt() => Some(("-", "removed", key)),
                (_, Some((key, _))) if order.is_gt() => Some(("+", "added", key)),
                (Some((key, a)), Some((_, b))) if a[..] != b[..] => Some(("~", "changed", key)),
                _ => None,
            };
            if let Some((sign, change, key)) = difference {
                let key = shown::key(key);
                let role = match sign {
                    "-" => Role::Fault,
                    "+" => Role::Added,
                    _ => Role::Name,
                };
                let text = || paint(role, &format!("{sign} {key}"));
                (outcome, left) = (Outcome::Different, left - 1);
                match out.either(|| json!({ "change": change, "key": key }), text) {
                    // The stores differ, even if the reader has closed the output.
                    Err(Failure::Closed) => break,
                    written => written?,
                }
            }
            if order.is_le() {
                old = from.next().transpose()?;
            }
            if order.is_ge() {
                new = to.next().transpose()?;
            }
        }
        Ok(outcome)
    }
}
