//! A search: its options, and its evaluation.

use std::sync::Arc;

use keyloom::{Reader, Result};
use keyloom_bitmaps::BitmapExpr;

use super::bm25::Bm25;
use super::build::Builder;
use super::catalog::Catalog;
use super::cursor::END;
use super::expand::Expansion;
use super::explain::Explanation;
use super::node::{Boolean, Node};
use super::plan::{Plan, Planner};
use super::rank::{count, rank};
use super::statistics::Statistics;
use super::top_k::{Hit, TopK};
use crate::Query;

/// The position at which the next page of a search begins: after a document with a score.
///
/// It holds the statistics of the first page, so the scores of documents that do not change are the
/// same on all pages. Of these, no page skips or repeats one, whatever is written between the
/// pages. A document that was changed, added or deleted between two pages may be on none of them or
/// on both.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchContinuation {
    last: Hit,
    statistics: Arc<Statistics>,
}

/// A query with its options.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) query: Query,
    pub(crate) limit: usize,
    pub(crate) after: Option<SearchContinuation>,
    pub(crate) filters: Vec<BitmapExpr>,
    pub(crate) bm25: Bm25,
    pub(crate) expansion: Expansion,
}

/// A plan with its statistics.
struct Prepared {
    plan: Plan,
    statistics: Arc<Statistics>,
}

impl Request {
    pub(crate) fn new(query: Query) -> Self {
        let (bm25, expansion) = (Bm25::default(), Expansion::default());
        Self { query, limit: 10, after: None, filters: Vec::new(), bm25, expansion }
    }

    fn prepare(&self, catalog: &impl Catalog, reader: &impl Reader) -> Result<Prepared> {
        self.query.check()?;
        let planner = Planner { catalog, reader, expansion: self.expansion };
        let plan = planner.plan(&self.query)?.unwrap_or(Plan::None);
        let statistics = match &self.after {
            Some(after) => Arc::clone(&after.statistics),
            None => Arc::new(Statistics::read(catalog, reader, &plan)?),
        };
        Ok(Prepared { plan, statistics })
    }

    fn root<'r, R: Reader>(
        &self,
        catalog: &impl Catalog,
        reader: &'r R,
        prepared: &Prepared,
    ) -> Result<Node<'r, R>> {
        let builder =
            Builder { catalog, reader, statistics: &prepared.statistics, bm25: self.bm25 };
        let root = builder.build(&prepared.plan, 1.0)?;
        let Some((first, others)) = self.filters.split_first() else { return Ok(root) };
        let filter = others.iter().fold(first.clone(), |all, filter| all & filter.clone());
        let filter = builder.ids(&filter, 0.0)?;
        Ok(Node::Boolean(Box::new(Boolean::new(vec![root, filter], Vec::new(), Vec::new()))))
    }

    /// The best documents, and the position after them if there may be more.
    ///
    /// # Errors
    /// Any error of the query or of the store.
    pub(crate) fn top<R: Reader>(
        &self,
        catalog: &impl Catalog,
        reader: &R,
    ) -> Result<(Vec<Hit>, Option<SearchContinuation>)> {
        let prepared = self.prepare(catalog, reader)?;
        let mut top = TopK::new(self.limit, self.after.as_ref().map(|after| after.last));
        rank(&mut self.root(catalog, reader, &prepared)?, &mut top)?;
        Ok(self.page(top.into_hits(), prepared))
    }

    fn page(&self, hits: Vec<Hit>, prepared: Prepared) -> (Vec<Hit>, Option<SearchContinuation>) {
        let last = hits.last().copied().filter(|_| hits.len() >= self.limit);
        let statistics = prepared.statistics;
        (hits, last.map(|last| SearchContinuation { last, statistics }))
    }

    /// As [`top`](Request::top), by the scores that `score` computes from an id and its score. It
    /// visits all matches.
    ///
    /// # Errors
    /// As [`top`](Request::top), and the errors of `score`.
    pub(crate) fn top_by<R: Reader>(
        &self,
        catalog: &impl Catalog,
        reader: &R,
        mut score: impl FnMut(u32, f64) -> Result<f64>,
    ) -> Result<(Vec<Hit>, Option<SearchContinuation>)> {
        let prepared = self.prepare(catalog, reader)?;
        let mut top = TopK::new(self.limit, self.after.as_ref().map(|after| after.last));
        let mut root = self.root(catalog, reader, &prepared)?;
        let mut doc = root.seek(0)?;
        while doc != END {
            let score = score(doc, root.score()?)?;
            top.push(Hit { doc, score });
            doc = root.seek(doc + 1)?;
        }
        Ok(self.page(top.into_hits(), prepared))
    }

    /// The number of matches.
    ///
    /// # Errors
    /// As [`top`](Request::top).
    pub(crate) fn count<R: Reader>(&self, catalog: &impl Catalog, reader: &R) -> Result<u64> {
        let prepared = self.prepare(catalog, reader)?;
        count(&mut self.root(catalog, reader, &prepared)?)
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

    /// How the score of a document is computed. Filters are left out.
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
