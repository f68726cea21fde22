//! The records of an inverted index that fulfil conditions.

mod conditions;

use std::collections::VecDeque;
use std::ops::Bound;

use keyloom::AnySnapshot;
use keyloom::key::{Element, List, elements, pack};
use keyloom_bitmaps::{BitmapExpr, FieldValues, InvertedIndex};
use keyloom_kit::{RecordKey, starting_with, within};
use serde_json::json;

use super::At;
use super::listing::{Hit, Record, list};
use crate::failure::{Failure, Result};
use crate::output::{Output, grouped};
use crate::selection::one_key;
use crate::words::word;

use conditions::{Comparison, Condition, EXAMPLE, Value};

/// The ids whose record keys are read at once.
const PAGE: usize = 200;

/// A record key of any elements, as a list of ids stores it.
type AnyKey = List<Vec<Element>>;

/// Lists the records that fulfil a condition, after their number. Without a query, lists all.
pub fn run(at: &At<'_>, out: &mut Output) -> Result {
    let condition = at.query().map(Condition::parse).transpose()?;
    let condition = condition.unwrap_or(Condition::All(Vec::new()));
    let space = &at.part.space;
    match at.part.options.starts_with("dense ids") {
        true => Audience::of(at, InvertedIndex::<AnyKey, ()>::new(space))?.list(&condition, out),
        false => {
            let index = InvertedIndex::<u64, ()>::with_keys_as_ids(space);
            Audience::of(at, index)?.list(&condition, out)
        }
    }
}

/// A field, and whether it has slices of integers.
type Field = (String, bool);

/// The fields that the options of an index list: `… fields "level" of integers, "town" of values`.
fn fields(options: &str) -> Option<Vec<Field>> {
    let (_, mut rest) = options.split_once("fields ")?;
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let (name, after) = word(rest, &[]);
        let name = elements(&one_key(name).ok()?).ok()?;
        let [Element::Str(name)] = &name[..] else { return None };
        let (kind, after) = after.split_once(", ").unwrap_or((after, ""));
        let is_integers = match kind {
            " of integers" => true,
            " of values" => false,
            _ => return None,
        };
        fields.push((name.clone(), is_integers));
        rest = after;
    }
    Some(fields)
}

/// An inverted index, opened without the functions of its fields, which only writes call.
struct Audience<'q, K> {
    at: &'q At<'q>,
    index: InvertedIndex<K, ()>,
    fields: Vec<Field>,
}

impl<'q, K: RecordKey> Audience<'q, K> {
    fn of(at: &'q At<'q>, index: InvertedIndex<K, ()>) -> Result<Self> {
        let fields = fields(&at.part.options).ok_or_else(|| {
            Failure::new(format!("this program does not know the options {:?}", at.part.options))
        })?;
        let index = fields.iter().fold(index, |index, (name, is_integers)| match is_integers {
            true => index.integers(name, |_, ()| None),
            false => index.field(name, |_, ()| FieldValues::<AnyKey>::none()),
        });
        Ok(Self { at, index, fields })
    }

    fn list(&self, condition: &Condition, out: &mut Output) -> Result {
        let (at, snapshot) = (self.at, self.at.snapshot);
        let expr = self.expr(condition)?;
        let count = expr.count(snapshot)?;
        let text = || match count {
            1 => "1 record".to_owned(),
            count => format!("{} records", grouped(count)),
        };
        out.either(|| json!({"count": count}), text)?;
        if count == 0 {
            return Ok(());
        }
        let mut ids = expr.ids(snapshot, ..)?;
        let mut page = VecDeque::new();
        let hits = std::iter::from_fn(|| {
            if page.is_empty() {
                match ids.by_ref().take(PAGE).collect::<keyloom::Result<Vec<u64>>>() {
                    Ok(ids) => page.extend(self.hits(ids)),
                    Err(error) => return Some(Err(error.into())),
                }
            }
            page.pop_front()
        });
        list(at, out, hits, "there is no such record")
    }

    /// The records with these ids.
    fn hits(&self, ids: Vec<u64>) -> Vec<Result<Hit>> {
        let keys = match self.index.keys(self.at.snapshot, ids.iter().copied()) {
            Ok(keys) => keys,
            Err(error) => return vec![Err(error.into())],
        };
        let hit = |(id, key): (u64, Option<K>)| {
            let prefix = self.at.table.space.prefix();
            let key = key.map(|key| [prefix, &pack(&key)].concat());
            Ok(Hit {
                from: format!("the id {id}"),
                record: Record::AtOneOf(key.into_iter().collect()),
                text: String::new(),
                // As text, because a number of JavaScript holds only 53 bits of an integer.
                fields: json!({"id": id.to_string()}),
            })
        };
        ids.into_iter().zip(keys).map(hit).collect()
    }

    /// The ids of the records that fulfil a condition.
    fn expr(&self, condition: &Condition) -> Result<BitmapExpr> {
        let each = |all: &[Condition]| -> Result<Vec<BitmapExpr>> {
            all.iter().map(|one| self.expr(one)).collect()
        };
        Ok(match condition {
            Condition::All(all) if all.is_empty() => self.index.all(),
            Condition::All(all) => BitmapExpr::all_of(each(all)?),
            Condition::Any(all) => BitmapExpr::any_of(each(all)?),
            Condition::Not(one) => self.index.all() - self.expr(one)?,
            Condition::Field(field, comparison, value) => {
                let known = self.fields.iter().find(|(name, _)| name == field);
                match known {
                    Some((_, true)) => self.of_integers(field, *comparison, value)?,
                    Some((_, false)) => self.of_values(field, *comparison, value)?,
                    None => return Err(self.unknown(field)),
                }
            }
        })
    }

    fn unknown(&self, field: &str) -> Failure {
        let fields: Vec<_> = self.fields.iter().map(|(name, _)| format!("{name:?}")).collect();
        let has = if fields.is_empty() { "no fields".to_owned() } else { fields.join(", ") };
        let name = &self.at.part.name;
        Failure::new(format!(
            "{name:?} has no field {field:?}; it has {has}; a condition is {EXAMPLE}"
        ))
    }

    fn of_integers(
        &self,
        field: &str,
        comparison: Comparison,
        value: &Value,
    ) -> Result<BitmapExpr> {
        let number = match value {
            Value::Exactly(Element::Int(number)) => i64::try_from(*number).ok(),
            Value::Exactly(Element::Null) if comparison == Comparison::Equal => {
                return Ok(self.index.absent(field)?);
            }
            _ => None,
        };
        let number = number.ok_or_else(|| {
            Failure::new(format!(
                "the field {field:?} has integers of 64 bits, so a condition is such as '{field}>=3' or '{field}=null'"
            ))
        })?;
        let integers = self.index.integers_of(field)?;
        Ok(match comparison {
            Comparison::Equal => integers.eq(number),
            Comparison::Less => integers.lt(number),
            Comparison::LessOrEqual => integers.le(number),
            Comparison::Greater => integers.gt(number),
            Comparison::GreaterOrEqual => integers.ge(number),
        })
    }

    fn of_values(&self, field: &str, comparison: Comparison, value: &Value) -> Result<BitmapExpr> {
        let snapshot: &AnySnapshot<'_> = self.at.snapshot;
        let element = match value {
            Value::Beginning(text) => {
                return Ok(self.index.any_term(snapshot, field, starting_with(text.as_str()))?);
            }
            Value::Exactly(Element::Null) if comparison == Comparison::Equal => {
                return Ok(self.index.absent(field)?);
            }
            Value::Exactly(element) => element,
        };
        let free = Bound::Unbounded;
        let bounds = match comparison {
            Comparison::Equal => {
                let exactly = self.index.term(field, element.clone())?;
                // Without an exact match, only values of another type or longer tuples can be
                // selected.
                return match exactly.first(snapshot)? {
                    Some(_) => Ok(exactly),
                    None => Ok(self.index.any_term(snapshot, field, element.clone())?),
                };
            }
            Comparison::Less => (free, Bound::Excluded(element.clone())),
            Comparison::LessOrEqual => (free, Bound::Included(element.clone())),
            Comparison::Greater => (Bound::Excluded(element.clone()), free),
            Comparison::GreaterOrEqual => (Bound::Included(element.clone()), free),
        };
        Ok(self.index.any_term(snapshot, field, within::<Element>(bounds))?)
    }
}
