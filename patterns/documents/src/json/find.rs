//! Documents that satisfy a condition.

use std::cmp::Reverse;
use std::collections::VecDeque;

use keyloom::{Reader, Result};
use keyloom_kit::{Continuation, Page, RecordKey, UnreadableEntry};
use keyloom_tables::schema::State;
use serde_json::Value;

use super::JsonPath;
use super::collection::{Collection, PathIndex};
use super::condition::{Condition, Is, Kind, Test};
use super::query::JsonQuery;

/// How many documents are read together.
pub(super) const BATCH: usize = 256;

/// The greatest number of queries by indexes for one condition. Each begins a range of
/// its own, and a document is compared with the tests of all before it.
const MOST_BRANCHES: usize = 100;

/// A query by an index, which finds the documents that satisfy all of its tests.
pub(super) struct Branch<'c, K: RecordKey> {
    pub(super) query: JsonQuery<'c, K>,
    pub(super) tests: Vec<Test>,
}

impl<K: RecordKey> Clone for Branch<'_, K> {
    fn clone(&self) -> Self {
        Self { query: self.query.clone(), tests: self.tests.clone() }
    }
}

impl<'c, K: RecordKey> Branch<'c, K> {
    /// The query with a test at the next path of the index.
    fn with(&self, path: &JsonPath, is: Is) -> Self {
        let query = match &is {
            Is::OneOf(values) => {
                values.iter().fold(self.query.clone(), |query, value| query.equal(value.clone()))
            }
            Is::Within(range) => self.query.clone().range(range.clone()),
            Is::Present => self.query.clone().range(..),
        };
        let test = Test { path: path.clone(), is };
        Self { query, tests: self.tests.iter().cloned().chain([test]).collect() }
    }

    fn has(&self, document: &Value) -> bool {
        self.tests.iter().all(|test| test.matches(document))
    }
}

/// How much an index narrows a search: the paths whose values are known, whether the next one is
/// limited to a range, and with how few queries.
type Rank = (usize, bool, Reverse<usize>);

impl<K: RecordKey> PathIndex<K> {
    /// The queries whose documents are all that satisfy the tests which the index knows.
    fn branches(&self, tests: &[&Test]) -> Option<(Rank, Vec<Branch<'_, K>>)> {
        // Tests may hold for different elements, and a nested index has combinations of one.
        let usable = if self.definition.each.is_some() { 1 } else { usize::MAX };
        let mut branches = vec![Branch { query: JsonQuery::new(self), tests: Vec::new() }];
        let (mut known, mut is_range) = (0, false);
        for path in self.definition.paths.iter().take(usable) {
            let path = self.definition.each.as_ref().map_or(path.clone(), |each| path.below(each));
            let here = || tests.iter().filter(|test| test.path == path).map(|test| &test.is);
            let lists = here().filter_map(|is| match is {
                Is::OneOf(values) if values.len() * branches.len() <= MOST_BRANCHES => Some(values),
                _ => None,
            });
            if let Some(values) = lists.min_by_key(|values| values.len()) {
                branches = values
                    .iter()
                    .flat_map(|value| {
                        let is = Is::OneOf(vec![value.clone()]);
                        branches
                            .iter()
                            .map(|branch| branch.with(&path, is.clone()))
                            .collect::<Vec<_>>()
                    })
                    .collect();
                known += 1;
                continue;
            }
            let range = here().find(|is| matches!(is, Is::Within(_)));
            is_range = range.is_some();
            // All documents with a value at the first path are in the index.
            let is = range.or(here().find(|_| known == 0 && branches.len() == 1));
            if let Some(is @ (Is::Within(_) | Is::Present)) = is {
                branches = branches.iter().map(|branch| branch.with(&path, is.clone())).collect();
            }
            break;
        }
        let is_narrowed = known > 0 || branches.iter().any(|branch| !branch.tests.is_empty());
        is_narrowed.then_some(((known, is_range, Reverse(branches.len())), branches))
    }
}

impl<K: RecordKey> Collection<K> {
    /// The documents that satisfy a condition, each once.
    ///
    /// Uses the [built](Collection::build) index that knows the most of what must hold, and one for
    /// each alternative of `|`, if there is one for all of them: their documents come one after the
    /// other, each in the order of its index. Values of [`Condition::one_of`] are looked up one by
    /// one. Without such an index, all documents are read, in the order of their keys.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_documents::json::{Collection, Condition};
    /// use keyloom_tables::Schema;
    /// use serde_json::json;
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "shop")?;
    /// let orders = Collection::<u32>::open(&schema, "orders")?.with_index(&schema, ["city"])?;
    /// store.transact(|txn| {
    ///     orders.put(txn, &1, &json!({ "city": "Oslo", "paid": true }))?;
    ///     orders.put(txn, &2, &json!({ "city": "Rome" }))?;
    ///     orders.put(txn, &3, &json!({ "city": "Bergen" }))
    /// })?;
    /// let in_the_north = Condition::one_of("city", ["Oslo", "Bergen"])?;
    /// let unpaid = in_the_north & Condition::missing("paid")?;
    /// assert_eq!(orders.indexes_for(&unpaid), ["city"]);
    /// let snapshot = store.snapshot()?;
    /// let found: Vec<_> = orders.find_where(&snapshot, &unpaid)?.collect::<Result<_, _>>()?;
    /// assert_eq!(found, [(3, json!({ "city": "Bergen" }))]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`JsonQuery::page`], which the iterator also returns. After an
    /// [`UnreadableEntry`] it continues with the next document.
    pub fn find_where<'r, R: Reader>(
        &'r self,
        reader: &'r R,
        condition: &'r Condition,
    ) -> Result<impl Iterator<Item = Result<(K, Value)>> + 'r> {
        let mut readable = Vec::new();
        for index in &self.indexes {
            if index.index.state(reader)? == State::Readable {
                readable.push(index);
            }
        }
        let branches = branches(condition, &readable);
        let scan = branches.is_none().then(|| {
            let page =
                |after: Option<Continuation>| self.table.page(reader, .., BATCH, after.as_ref());
            Pages::new(page)
        });
        let branches = branches.unwrap_or_default();
        let found = (0..branches.len()).flat_map(move |n| {
            let branch = branches.get(n).cloned();
            let query = branch.map(|branch| branch.query.limit(BATCH));
            let page = move |after: Option<Continuation>| match &query {
                Some(query) => query.clone().after(after).page(reader),
                None => Ok(Page { items: Vec::new(), next: None }),
            };
            let before = branches.get(..n).unwrap_or_default().to_vec();
            // What an earlier query has found is not found again.
            Pages::new(page).filter(move |found| match found {
                Ok((_, document)) => !before.iter().any(|branch| branch.has(document)),
                Err(_) => true,
            })
        });
        Ok(scan.into_iter().flatten().chain(found).filter(|found| match found {
            Ok((_, document)) => condition.matches(document),
            Err(_) => true,
        }))
    }

    /// The indexes that [`find_where`](Collection::find_where) uses for a condition if all are
    /// built, each once; none if it reads all documents.
    pub fn indexes_for(&self, condition: &Condition) -> Vec<String> {
        let all: Vec<&PathIndex<K>> = self.indexes.iter().collect();
        let mut names: Vec<String> = Vec::new();
        for branch in branches(condition, &all).unwrap_or_default() {
            let name = branch.query.index_name();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

/// The queries that together find all documents which satisfy the condition; `None` if no index
/// does.
fn branches<'c, K: RecordKey>(
    condition: &Condition,
    indexes: &[&'c PathIndex<K>],
) -> Option<Vec<Branch<'c, K>>> {
    let conjuncts = condition.conjuncts();
    let tests = conjuncts.iter().filter_map(|conjunct| match &conjunct.0 {
        Kind::At(test) => Some(test),
        _ => None,
    });
    let tests: Vec<&Test> = tests.collect();
    // Of equal ones, the first that was declared.
    let by_tests = indexes.iter().rev().filter_map(|index| index.branches(&tests));
    let best = by_tests.max_by_key(|(rank, _)| *rank);
    let of_alternatives = || {
        conjuncts.iter().find_map(|conjunct| match &conjunct.0 {
            Kind::Any(any) => {
                let each = any.iter().map(|one| branches(one, indexes));
                let all: Vec<Branch<'c, K>> =
                    each.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect();
                (all.len() <= MOST_BRANCHES).then_some(all)
            }
            _ => None,
        })
    };
    match best {
        // A range, or all that have a value, is wider than alternatives with known values.
        Some(((0, ..), wide)) => of_alternatives().or(Some(wide)),
        Some((_, branches)) => Some(branches),
        None => of_alternatives(),
    }
}

/// The items of all pages.
pub(super) struct Pages<T, F> {
    page: F,
    ready: VecDeque<T>,
    /// The position of the next page; `None` after the last one.
    next: Option<Option<Continuation>>,
}

impl<T, F: Fn(Option<Continuation>) -> Result<Page<T>>> Pages<T, F> {
    pub(super) fn new(page: F) -> Self {
        Self { page, ready: VecDeque::new(), next: Some(None) }
    }
}

impl<T, F: Fn(Option<Continuation>) -> Result<Page<T>>> Iterator for Pages<T, F> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(Ok(item));
            }
            match (self.page)(self.next.take()?) {
                Ok(page) => {
                    self.ready = page.items.into();
                    self.next = page.next.map(Some);
                }
                Err(error) => {
                    let unreadable = error.downcast_ref::<UnreadableEntry>();
                    self.next = unreadable.map(|entry| Some(entry.next.clone()));
                    return Some(Err(error));
                }
            }
        }
    }
}
