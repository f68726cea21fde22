//! A search: its options, and its evaluation.

use std::sync::Arc;

use keyloom::{Budget, Budgeted, Reader, Result};
use keyloom_bitmaps::BitmapExpr;
use keyloom_kit::{Continuation, Fnv};

use super::best_of_terms::{self, LoneTerms};
use super::bm25::Bm25;
use super::build::Builder;
use super::continuation::{After, continuation, read_continuation};
use super::counting::SearchExplain;
use super::expand::Expansion;
use super::explain::Explanation;
use super::node::{Boolean, Node};
use super::plan::{Plan, Planner};
use super::rank::{count, rank};
use super::statistics::Statistics;
use super::top_k::{ScoredDoc, TopK};
use super::window::END;
use crate::Query;
use crate::index::Catalog;

/// A query with its options.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) query: Query,
    pub(crate) limit: usize,
    pub(crate) after: Option<Continuation>,
    pub(crate) filters: Vec<Filter>,
    pub(crate) bm25: Bm25,
    pub(crate) expansion: Expansion,
    /// The order of the results, for continuations.
    pub(crate) order: String,
    /// The statistics of a search without a continuation; `None` if they must be read.
    pub(super) statistics: Option<Arc<Statistics>>,
}

/// A filter of a search.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    pub(crate) ids: BitmapExpr,
    /// The name that continuations contain instead of the ids, if the ids may change.
    pub(crate) name: Option<String>,
}

impl Filter {
    fn add_to(&self, hash: &mut Fnv) {
        match &self.name {
            None => hash.add(&self.ids.fingerprint().to_be_bytes()),
            Some(name) => {
                hash.add(&(name.len() as u64).to_be_bytes());
                hash.add(name.as_bytes());
            }
        }
    }
}

/// A plan with its statistics.
pub(crate) struct Prepared {
    pub(super) plan: Plan,
    pub(super) statistics: Arc<Statistics>,
    /// The last document of the previous page.
    pub(super) after: Option<After>,
}

impl Prepared {
    pub(super) fn last(&self) -> Option<ScoredDoc> {
        self.after.map(|after| after.last)
    }
}

/// Whether a visit of the matches computes their scores. Computing scores takes about as long as
/// finding the matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scores {
    Computed,
    LeftOut,
}

/// The best documents, and the position after them.
pub(crate) type Top = (Vec<ScoredDoc>, Option<Continuation>);

impl Request {
    pub(crate) fn new(query: Query) -> Self {
        let (bm25, expansion) = (Bm25::default(), Expansion::default());
        Self {
            query,
            limit: 10,
            after: None,
            filters: Vec::new(),
            bm25,
            expansion,
            order: String::new(),
            statistics: None,
        }
    }

    pub(super) fn prepare(&self, catalog: &impl Catalog, reader: &impl Reader) -> Result<Prepared> {
        self.query.check()?;
        self.bm25.check()?;
        let read = |after: &Continuation| read_continuation(after, self.fingerprint(catalog));
        let after = self.after.as_ref().map(read).transpose()?;
        let planner = Planner::new(catalog, reader, self.expansion, &self.query);
        let plan = planner.plan_all()?.unwrap_or(Plan::None);
        Ok(match after {
            Some((after, statistics)) => Prepared { plan, statistics, after: Some(after) },
            None => {
                let statistics = match &self.statistics {
                    Some(statistics) => Arc::clone(statistics),
                    None => Arc::new(Statistics::read(catalog, reader, &plan)?),
                };
                Prepared { plan, statistics, after: None }
            }
        })
    }

    /// A hash of everything that determines matches and scores, including the index, since ids
    /// differ between indexes.
    pub(super) fn fingerprint(&self, catalog: &impl Catalog) -> u64 {
        let mut hash = Fnv::new();
        for part in [
            catalog.space().prefix(),
            catalog.description().as_bytes(),
            self.query.to_string().as_bytes(),
            format!("{:?} {}", self.bm25, self.order).as_bytes(),
        ] {
            hash.add(&(part.len() as u64).to_be_bytes());
            hash.add(part);
        }
        self.filters.iter().for_each(|filter| filter.add_to(&mut hash));
        hash.finish()
    }

    fn builder<'b, 'r, C: Catalog, R: Reader>(
        &self,
        catalog: &'b C,
        reader: &'r R,
        prepared: &'b Prepared,
    ) -> Builder<'b, 'r, C, R> {
        Builder { catalog, reader, statistics: &prepared.statistics, bm25: self.bm25 }
    }

    pub(super) fn root<'r, R: Reader>(
        &self,
        catalog: &impl Catalog,
        reader: &'r R,
        prepared: &Prepared,
    ) -> Result<Node<'r, R>> {
        let builder = self.builder(catalog, reader, prepared);
        let mut root = builder.build(&prepared.plan, 1.0)?;
        root.prefetch(reader)?;
        let Some((first, others)) = self.filters.split_first() else { return Ok(root) };
        let filter = others.iter().fold(first.ids.clone(), |all, other| all & other.ids.clone());
        let filter = builder.ids(&filter, 0.0)?;
        Ok(Node::Boolean(Box::new(Boolean::new(vec![root, filter], Vec::new(), Vec::new()))))
    }

    /// The best documents, and the position after them if there may be more.
    ///
    /// # Errors
    /// Any error of the query or of the store.
    pub(crate) fn top<R: Reader>(&self, catalog: &impl Catalog, reader: &R) -> Result<Top> {
        let prepared = self.prepare(catalog, reader)?;
        let best = self.best(catalog, reader, &prepared)?;
        self.page(catalog, best, false, &prepared)
    }

    /// The best documents after the last one of the previous page.
    fn best<R: Reader>(
        &self,
        catalog: &impl Catalog,
        reader: &R,
        prepared: &Prepared,
    ) -> Result<Vec<ScoredDoc>> {
        let mut top = TopK::new(self.limit, prepared.last());
        let is_short = self.filters.is_empty() && self.limit <= best_of_terms::MOST;
        match LoneTerms::of(&prepared.plan, 1.0).filter(|_| is_short) {
            Some(lone) => {
                self.builder(catalog, reader, prepared).best_of_terms(&lone, &mut top)?;
            }
            None => rank(&mut self.root(catalog, reader, prepared)?, &mut top)?,
        }
        Ok(top.into_hits())
    }

    /// A page; `is_missing` is whether its last document has no value to sort by.
    pub(super) fn page(
        &self,
        catalog: &impl Catalog,
        hits: Vec<ScoredDoc>,
        is_missing: bool,
        prepared: &Prepared,
    ) -> Result<Top> {
        let last = hits.last().copied().filter(|_| hits.len() >= self.limit);
        let next = last.map(|last| {
            let (search, after) = (self.fingerprint(catalog), After { last, is_missing });
            continuation(search, after, &prepared.statistics)
        });
        Ok((hits, next.transpose()?))
    }

    /// The number of matches.
    ///
    /// # Errors
    /// As [`top`](Request::top).
    pub(crate) fn count<R: Reader>(&self, catalog: &impl Catalog, reader: &R) -> Result<u64> {
        let prepared = self.prepare(catalog, reader)?;
        let plan = match &prepared.plan {
            Plan::Constant(plan, _) => plan,
            plan => plan,
        };
        if let (Plan::Term { field, term }, []) = (plan, &self.filters[..]) {
            let now = Statistics::read(catalog, reader, &prepared.plan)?;
            return Ok(now.documents(field.number, term));
        }
        count(&mut self.root(catalog, reader, &prepared)?)
    }

    /// The cost of `hits`, which returns the number of hits that it finds.
    ///
    /// # Errors
    /// As [`top`](Request::top), and the errors of `hits`.
    pub(crate) fn reads<R: Reader>(
        &self,
        catalog: &impl Catalog,
        reader: &R,
        hits: impl FnOnce(&Budgeted<'_, R>) -> Result<usize>,
    ) -> Result<SearchExplain> {
        let counting = Budgeted::new(reader, Budget::new());
        let hits = hits(&counting)? as u64;
        let lists = self.prepare(catalog, reader)?.plan.lists() as u64;
        Ok(SearchExplain { lists, hits, ..SearchExplain::of(counting.spent()) })
    }

    /// The ids of all matches, ascending.
    ///
    /// # Errors
    /// As [`top`](Request::top).
    pub(crate) fn ids<R: Reader>(&self, catalog: &impl Catalog, reader: &R) -> Result<Vec<u32>> {
        let prepared = self.prepare(catalog, reader)?;
        let mut root = self.root(catalog, reader, &prepared)?;
        let (mut ids, mut doc) = (Vec::new(), root.seek(0)?);
        while doc != END {
            ids.push(doc);
            doc = root.seek(doc + 1)?;
        }
        Ok(ids)
    }

    /// Visits all matches by ascending id, with their scores, or with 0 if scores are left out.
    ///
    /// # Errors
    /// As [`top`](Request::top), and the errors of `visit`.
    pub(super) fn for_each<R: Reader>(
        &self,
        catalog: &impl Catalog,
        reader: &R,
        prepared: &Prepared,
        scores: Scores,
        mut visit: impl FnMut(ScoredDoc) -> Result<()>,
    ) -> Result<()> {
        let mut root = self.root(catalog, reader, prepared)?;
        let mut doc = root.seek(0)?;
        while doc != END {
            let score = match scores {
                Scores::Computed => root.score()?,
                Scores::LeftOut => 0.0,
            };
            visit(ScoredDoc { doc, score })?;
            doc = root.seek(doc + 1)?;
        }
        Ok(())
    }

    /// Explains how the score of a document is computed. Filters are left out.
    ///
    /// # Errors
    /// As [`top`](Request::top).
    pub(crate) fn explain<R: Reader>(
        &self,
        catalog: &impl Catalog,
        reader: &R,
        doc: u32,
    ) -> Result<Explanation> {
        let prepared = self.prepare(catalog, reader)?;
        let statistics = &*prepared.statistics;
        let builder = Builder { catalog, reader, statistics, bm25: self.bm25 };
        builder.explain(&prepared.plan, 1.0, doc)
    }
}
