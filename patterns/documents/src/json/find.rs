//! Documents that satisfy a condition.

use std::cmp::Reverse;
use std::collections::{HashSet, VecDeque};
use std::ops::Bound;
use std::rc::Rc;

use keyloom::{Error, Reader, Result};
use keyloom_kit::{Continuation, Page, RecordKey, UnreadableEntry};
use keyloom_tables::schema::State;
use serde_json::Value;

use super::JsonPath;
use super::collection::Collection;
use super::condition::{Condition, Is, Kind, Test};
use super::path_index::PathIndex;
use super::query::JsonQuery;

/// The number of documents that are read together.
// A lower number adds round trips. A higher one needs more memory, and wastes reads if the caller
// stops early.
pub(super) const BATCH: usize = 256;

/// The greatest number of index queries for one condition. Each query reads its own range, and each
/// document found is compared with the tests of all earlier queries.
const MOST_BRANCHES: usize = 100;

/// An index query, and the tests that its documents must pass.
pub(super) struct Branch<'c, K: RecordKey> {
    pub(super) query: JsonQuery<'c, K>,
    /// The path of the elements: one of them must pass all tests. `None` if the document itself
    /// must pass.
    each: Option<&'c JsonPath>,
    /// The tests at the first paths of the index.
    tests: Vec<Test>,
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
        let tests = self.tests.iter().cloned().chain([test]).collect();
        Self { query, each: self.each, tests }
    }

    /// Whether the query fixes the value at the first path.
    fn is_narrow(&self) -> bool {
        self.tests.first().is_some_and(|test| matches!(test.is, Is::OneOf(_)))
    }

    fn has(&self, document: &Value) -> bool {
        let pass = |value: &Value| self.tests.iter().all(|test| test.matches(value));
        match self.each {
            Some(each) => each.values(document).into_iter().any(pass),
            None => pass(document),
        }
    }
}

impl Is {
    /// The number of allowed values, if the test lists them.
    fn values(&self) -> usize {
        match self {
            Self::OneOf(values) => values.len(),
            _ => usize::MAX,
        }
    }

    /// The range that contains all allowed values; `None` if every value is allowed.
    fn limits(&self) -> Option<Self> {
        match self {
            Self::Within((Bound::Unbounded, Bound::Unbounded)) | Self::Present => None,
            Self::Within(range) => Some(Self::Within(range.clone())),
            Self::OneOf(values) => {
                let (first, last) = (values.first()?.clone(), values.last()?.clone());
                Some(Self::Within((Bound::Included(first), Bound::Included(last))))
            }
        }
    }
}

/// What a document must have at a path.
struct Needed<'t> {
    path: JsonPath,
    is: &'t Is,
}

/// The tests that every document of a condition passes and that an index can use.
struct AllNeeded<'t> {
    /// Tests of the values of the document.
    anywhere: Vec<Needed<'t>>,
    /// For a path of elements, the tests that one element must pass.
    in_one: Vec<(&'t JsonPath, Vec<Needed<'t>>)>,
}

impl<'t> AllNeeded<'t> {
    fn of(conjuncts: &[&'t Condition]) -> Self {
        let mut all = Self { anywhere: Vec::new(), in_one: Vec::new() };
        for conjunct in conjuncts {
            match &conjunct.0 {
                Kind::At(Test { path, is }) => {
                    all.anywhere.push(Needed { path: path.clone(), is });
                }
                Kind::Element(each, one) => {
                    let needed = Self::of(&one.conjuncts());
                    let in_document =
                        |one: &Needed<'t>| Needed { path: one.path.below(each), is: one.is };
                    all.anywhere.extend(needed.anywhere.iter().map(in_document));
                    all.in_one.push((each, needed.anywhere));
                }
                Kind::All(_) | Kind::Any(_) | Kind::Not(_) => {}
            }
        }
        all
    }
}

/// How much an index narrows a search: the number of paths with known values, whether the next path
/// is limited to a range, and the number of queries (fewer is better).
type Rank = (usize, bool, Reverse<usize>);

impl<K: RecordKey> PathIndex<K> {
    /// The queries that together find all documents that pass the needed tests at the paths of the
    /// index, and the rank of the index. `None` if no test is at the first path.
    fn branches(&self, needed: &AllNeeded<'_>) -> Option<(Rank, Vec<Branch<'_, K>>)> {
        let Some(each) = &self.definition.each else {
            return self.branches_by(&needed.anywhere, usize::MAX);
        };
        // Values that pass the tests of the document may be in different elements, but an entry of
        // a nested index holds values of one element. So only the first path of the index is used.
        let mut anywhere = Vec::new();
        for Needed { path, is } in &needed.anywhere {
            anywhere.extend(path.relative_to(each).map(|path| Needed { path, is }));
        }
        let in_one = needed.in_one.iter().filter(|(path, _)| *path == each);
        let in_one = in_one.filter_map(|(_, needed)| self.branches_by(needed, usize::MAX));
        in_one.chain(self.branches_by(&anywhere, 1)).max_by_key(|(rank, _)| *rank)
    }

    /// Like [`branches`](Self::branches), but uses only the tests in `needed` and the first
    /// `usable` paths of the index.
    fn branches_by(
        &self,
        needed: &[Needed<'_>],
        usable: usize,
    ) -> Option<(Rank, Vec<Branch<'_, K>>)> {
        let each = self.definition.each.as_ref();
        let mut branches = vec![Branch { query: JsonQuery::new(self), each, tests: Vec::new() }];
        let (mut known, mut is_range) = (0, false);
        for path in self.definition.paths.iter().take(usable) {
            let here = || needed.iter().filter(|one| one.path == *path).map(|one| one.is);
            let fits = |is: &&Is| match is {
                Is::OneOf(values) => values.len() * branches.len() <= MOST_BRANCHES,
                _ => false,
            };
            if let Some(Is::OneOf(values)) = here().filter(fits).min_by_key(|is| is.values()) {
                branches = values
                    .iter()
                    .flat_map(|value| {
                        let is = Is::OneOf(vec![value.clone()]);
                        let with = branches.iter().map(|branch| branch.with(path, is.clone()));
                        with.collect::<Vec<_>>()
                    })
                    .collect();
                known += 1;
                continue;
            }
            let range = here().find_map(Is::limits);
            is_range = range.is_some();
            // The index contains all documents with a value at the first path, so it also supports
            // a test for any value there.
            let is = range.or(here().next().filter(|_| known == 0).map(|_| Is::Present));
            if let Some(is) = is {
                branches = branches.iter().map(|branch| branch.with(path, is.clone())).collect();
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
    /// Uses the [built](Collection::build) index that narrows the condition most. For alternatives
    /// of `|`, uses one index for each, if there is an index for every alternative. The results of
    /// the alternatives follow each other, each in the order of its index. Values of
    /// [`Condition::one_of`] are looked up one by one, up to 100 in all. If no index fits, all
    /// documents are read, in the order of their keys. Through [`Snapshots`](keyloom::Snapshots), a
    /// document that moves in an index between two snapshots may be missed.
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
    /// assert_eq!(orders.indexes_for(&unpaid).unwrap(), ["city"]);
    /// let snapshot = store.snapshot()?;
    /// let found: Vec<_> = orders.find_where(&snapshot, &unpaid)?.collect::<Result<_, _>>()?;
    /// assert_eq!(found, [(3, json!({ "city": "Bergen" }))]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`JsonQuery::page`], which the iterator also returns. After an
    /// [`UnreadableEntry`] the iterator continues with the next document.
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
        let branches: Rc<[Branch<'r, K>]> = branches.unwrap_or_default().into();
        let found = (0..branches.len()).flat_map(move |n| {
            let branches = Rc::clone(&branches);
            let query = branches.get(n).map(|branch| branch.query.clone().limit(BATCH));
            let page = move |after: Option<Continuation>| match &query {
                Some(query) => query.clone().after(after).page(reader),
                None => Ok(Page { items: Vec::new(), next: None }),
            };
            // Drops documents that an earlier query returned: a document is returned only by the
            // first query whose tests it passes.
            Pages::new(page).filter(move |found| match found {
                Ok((_, document)) => {
                    branches.iter().position(|branch| branch.has(document)) == Some(n)
                }
                Err(_) => true,
            })
        });
        let mut unreadable = HashSet::new();
        Ok(scan.into_iter().flatten().chain(found).filter(move |found| match found {
            Ok((_, document)) => condition.matches(document),
            // Several queries may find the same undecodable document.
            Err(Error::At { key, .. }) => unreadable.insert(key.clone()),
            Err(_) => true,
        }))
    }

    /// The indexes that [`find_where`](Collection::find_where) uses for a condition if all are
    /// built, each once; `None` if it reads all documents.
    pub fn indexes_for(&self, condition: &Condition) -> Option<Vec<String>> {
        let all: Vec<&PathIndex<K>> = self.indexes.iter().collect();
        let mut names: Vec<String> = Vec::new();
        for branch in branches(condition, &all)? {
            let name = branch.query.index_name();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Some(names)
    }
}

/// The queries that together find all documents which satisfy the condition; `None` if no index
/// supports the condition.
fn branches<'c, K: RecordKey>(
    condition: &Condition,
    indexes: &[&'c PathIndex<K>],
) -> Option<Vec<Branch<'c, K>>> {
    let conjuncts = condition.conjuncts();
    let needed = AllNeeded::of(&conjuncts);
    // Among equal ranks, the index that was declared first wins.
    let by_tests = indexes.iter().rev().filter_map(|index| index.branches(&needed));
    let best = by_tests.max_by_key(|(rank, _)| *rank);
    let of_alternatives = || {
        let all = conjuncts.iter().filter_map(|conjunct| match &conjunct.0 {
            Kind::Any(any) => {
                let each = any.iter().map(|one| branches(one, indexes));
                let all: Vec<Branch<'c, K>> =
                    each.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect();
                (all.len() <= MOST_BRANCHES).then_some(all)
            }
            _ => None,
        });
        // Prefer alternatives with known values, then the fewest queries.
        all.min_by_key(|all| (!all.iter().all(Branch::is_narrow), all.len()))
    };
    match best {
        // A range, or all documents with a value, is wider than alternatives with known values.
        Some(((0, ..), wide)) => {
            let narrow = of_alternatives().filter(|all| all.iter().all(Branch::is_narrow));
            narrow.or(Some(wide))
        }
        Some((_, branches)) => Some(branches),
        None => of_alternatives(),
    }
}

/// Iterates over the items of all pages.
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
