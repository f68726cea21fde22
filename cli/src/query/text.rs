//! The records with terms, the best first.

use keyloom::key::{Element, List, elements, pack};
use keyloom_kit::Continuation;
use keyloom_text::Query;
use serde_json::json;

use super::At;
use super::listing::{Hit, Record, list};
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::selection::one_key;
use crate::shown;
use crate::texts::{self, Found, Searched};
use crate::words::{unquoted, word};

/// The largest number of results that one page of a search ranks.
const PAGE: usize = 1_000;
/// The largest number of counters that are read to list the fields of an index.
const MOST_COUNTERS: usize = 40;
const EXAMPLE: &str = "such as 'storm sea' or 'stor* \"New York\"'";
const NOTHING: &str = "no record has all of the terms in this field; terms are searched as they are stored, mostly in lower case and without endings: the page of `keyloom explore` lists them";

/// Lists the records with all terms of the query.
pub fn run(at: &At<'_>, out: &mut Output) -> Result {
    let group = at.args.group.as_deref().map(one_key).transpose()?;
    let group = group.map_or(Ok(Vec::new()), |group| elements(&group));
    let group = group.map_err(|error| Failure::new(error.to_string()))?;
    let searched = Searched {
        index: at.part,
        group: &group,
        field: at.args.field.unwrap_or(0),
        has_dense_ids: texts::has_dense_ids(at.snapshot, at.part)?,
    };
    refuse_other_fields(at, &searched)?;
    let query = query(&searched.name(), at.query().unwrap_or_default())?;
    let mut hits = Hits { at, searched, query, found: Vec::new().into_iter(), next: Next::First };
    let hits = std::iter::from_fn(|| hits.step().transpose());
    list(at, out, hits, NOTHING)
}

/// The query of a text: all of its terms.
fn query(field: &str, text: &str) -> Result<Query> {
    let (mut terms, mut rest) = (Vec::new(), text.trim_start());
    while !rest.is_empty() {
        let (first, after) = word(rest, &[]);
        rest = after.trim_start();
        terms.push(match first.strip_suffix('*') {
            Some("") => {
                return Err(Failure::new(format!("a prefix has a letter at least, {EXAMPLE}")));
            }
            Some(prefix) => Query::prefix(field, unquoted(prefix)?),
            None => Query::term(field, unquoted(first)?),
        });
    }
    match terms.len() {
        0 => Err(Failure::new(format!("a search needs terms as they are stored, {EXAMPLE}"))),
        1 => Ok(terms.swap_remove(0)),
        _ => Ok(Query::all_of(terms)),
    }
}

/// Refuses a field or a group without texts, if it is known that other fields or groups have texts.
fn refuse_other_fields(at: &At<'_>, searched: &Searched<'_>) -> Result {
    let own: Vec<Element> =
        searched.group.iter().cloned().chain([Element::from(i128::from(searched.field))]).collect();
    let own = pack(&List(own.as_slice()));
    let (fields, has_more) = texts::fields(at.snapshot, at.part, MOST_COUNTERS)?;
    if has_more || fields.is_empty() || fields.iter().any(|field| field.packed[..] == own[..]) {
        return Ok(());
    }
    let option = |field: &texts::Field| {
        let mut parts = elements(&field.packed).unwrap_or_default();
        let number = parts.pop().map_or_else(String::new, |number| shown::element(&number));
        match parts.as_slice() {
            [] => format!("--field {number}"),
            group => format!("--group '{}' --field {number}", shown::key(&pack(&List(group)))),
        }
    };
    let options: Vec<_> = fields.iter().map(option).collect();
    Err(Failure::new(format!(
        "{:?} has no texts in this field; it has texts in {}",
        at.part.name,
        options.join(", ")
    )))
}

/// The page of results that follows.
enum Next {
    First,
    After(Continuation),
    None,
}

/// The results of a search, read page by page.
struct Hits<'h> {
    at: &'h At<'h>,
    searched: Searched<'h>,
    query: Query,
    found: std::vec::IntoIter<Found>,
    next: Next,
}

impl Hits<'_> {
    fn step(&mut self) -> Result<Option<Hit>> {
        loop {
            if let Some(found) = self.found.next() {
                return Ok(Some(hit(self.at, &found)));
            }
            let after = match std::mem::replace(&mut self.next, Next::None) {
                Next::First => None,
                Next::After(after) => Some(after),
                Next::None => return Ok(None),
            };
            let limit = self.at.args.limit.clamp(1, PAGE);
            let query = self.query.clone();
            let (found, next) = self.searched.page(self.at.snapshot, query, limit, after)?;
            self.found = found.into_iter();
            self.next = next.map_or(Next::None, Next::After);
        }
    }
}

fn hit(at: &At<'_>, found: &Found) -> Hit {
    let key = [at.table.space.prefix(), &found.key].concat();
    Hit {
        from: format!("the document {}", shown::key(&found.key)),
        record: Record::AtOneOf(vec![key]),
        text: format!("{:.3}", found.score),
        fields: json!({"score": found.score}),
    }
}
