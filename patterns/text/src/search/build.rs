//! Builds the operators of a query from its plan.

use std::sync::Arc;

use keyloom::{Entry, Error, KeyRange, Order, Reader, Result};
use keyloom_bitmaps::BitmapExpr;
use keyloom_kit::Walk;

use super::bm25::{Bm25, Weight};
use super::combined::{Combined, CombinedStatistics, FieldLists};
use super::cursor::Cursor;
use super::expand::MatchedTerm;
use super::node::{AtLeast, Boolean, Expression, Ids, Near, Node};
use super::plan::{BooleanPlan, CombinedField, Plan};
use super::slot::Slot;
use super::spans::{SpanShape, SpansNode};
use super::statistics::Statistics;
use super::union::Union;
use crate::index::{Catalog, FieldInfo, LENGTHS, ListKeys};
use crate::postings::{BLOCK_POSTINGS, Block};

/// How many lists are read together from a remote store.
const LISTS_TOGETHER: usize = 256;

/// How many blocks of each list are read together from a remote store.
// With these numbers, one round trip returns at most 4,096 blocks. A list of more than 2,048
// postings costs further round trips.
const FIRST_BLOCKS: usize = 16;

/// Builds operators that read from one reader.
pub(crate) struct Builder<'b, 'r, C, R> {
    pub(crate) catalog: &'b C,
    pub(crate) reader: &'r R,
    pub(crate) statistics: &'b Statistics,
    pub(crate) bm25: Bm25,
}

impl<'r, C: Catalog, R: Reader> Builder<'_, 'r, C, R> {
    /// Builds the operators of a plan. Their scores are multiplied by `boost`.
    ///
    /// # Errors
    /// Any error of the store.
    pub(crate) fn build(&self, plan: &Plan, boost: f64) -> Result<Node<'r, R>> {
        Ok(match plan {
            Plan::None => Node::Ids(Ids::new([].into(), 0.0)),
            Plan::All => self.ids(&self.catalog.all()?, boost)?,
            Plan::Term { field, term } => {
                let factor = boost * self.statistics.idf(field.number, term);
                Node::Term(Box::new(self.cursor(*field, term, factor)))
            }
            Plan::Near { field, slots, proximity } => {
                let factor = boost * self.phrase_idf(*field, slots);
                let slot = |terms: &Vec<String>| self.slot(*field, terms, factor);
                let slots = slots.iter().map(slot).collect();
                let weight = self.weight(*field, factor);
                Node::Near(Box::new(Near::new(slots, proximity.clone(), weight)))
            }
            Plan::Spans { field, shape } => {
                let factor = boost * self.spans_idf(*field, shape);
                let shape = shape.map(&mut |terms| self.slot(*field, terms, factor));
                Node::Spans(Box::new(SpansNode::new(shape, self.weight(*field, factor))))
            }
            Plan::Combined { fields, .. } => Node::Combined(Box::new(self.combined(fields, boost))),
            Plan::Terms { field, terms } => self.union(*field, terms, boost)?,
            Plan::AtLeast { least, operands } => {
                Node::AtLeast(Box::new(AtLeast::new(self.all(operands, boost)?, *least)))
            }
            Plan::Boolean(boolean) => self.boolean(boolean, boost)?,
            Plan::Boost(plan, factor) => self.build(plan, boost * factor)?,
            Plan::Constant(plan, score) => {
                Node::Constant(Box::new(self.build(plan, 0.0)?), boost * score)
            }
        })
    }

    /// The sum over the places of a phrase. Each place counts with its greatest inverse document
    /// frequency.
    pub(crate) fn phrase_idf(&self, field: FieldInfo, slots: &[Vec<String>]) -> f64 {
        let idf = |term: &String| self.statistics.idf(field.number, term);
        slots.iter().map(|terms| terms.iter().map(idf).fold(0.0, f64::max)).sum()
    }

    /// The sum over the parts of spans. Alternatives count as the greatest of them.
    pub(crate) fn spans_idf(&self, field: FieldInfo, shape: &SpanShape<Vec<String>>) -> f64 {
        shape.sum(&|terms| self.phrase_idf(field, std::slice::from_ref(terms)))
    }

    /// A place of a phrase. All of its cursors have the weight of the phrase.
    fn slot(&self, field: FieldInfo, terms: &[String], factor: f64) -> Slot<'r, R> {
        Slot::new(terms.iter().map(|term| self.cursor(field, term, factor)).collect())
    }

    pub(crate) fn weight(&self, field: FieldInfo, factor: f64) -> Weight {
        Weight::new(self.bm25, self.statistics.field(field.number), factor)
    }

    fn combined(&self, fields: &[CombinedField], boost: f64) -> Combined<'r, R> {
        let of_all = CombinedStatistics::of(self.statistics, fields);
        let weight = of_all.weight(self.bm25, boost * of_all.idf());
        let lists = |of: &CombinedField| {
            let cursor = |term: &str| self.weighted(of.field, term, weight.of_field(of.weight));
            let terms = of.terms.iter().map(|term| cursor(term)).collect();
            FieldLists { weight: of.weight, terms, lengths: cursor(LENGTHS) }
        };
        Combined::new(fields.iter().map(lists).collect(), weight)
    }

    pub(crate) fn cursor(&self, field: FieldInfo, term: &str, factor: f64) -> Cursor<'r, R> {
        self.weighted(field, term, self.weight(field, factor))
    }

    fn weighted(&self, field: FieldInfo, term: &str, weight: Weight) -> Cursor<'r, R> {
        let keys = self.catalog.list(field, term);
        let documents = self.statistics.documents(field.number, term);
        Cursor::new(self.reader, keys, weight).of_documents(documents)
    }

    fn all(&self, plans: &[Plan], boost: f64) -> Result<Vec<Node<'r, R>>> {
        plans.iter().map(|plan| self.build(plan, boost)).collect()
    }

    /// The documents of an expression, with one score.
    pub(crate) fn ids(&self, ids: &BitmapExpr, score: f64) -> Result<Node<'r, R>> {
        Ok(Node::Expression(Box::new(Expression::new(ids.cursor(self.reader)?, score))))
    }

    /// The documents of many terms. They are collected in advance, since one cursor per term would
    /// cost more per document.
    fn union(&self, field: FieldInfo, terms: &[MatchedTerm], score: f64) -> Result<Node<'r, R>> {
        let (mut all, mut ids) = (Union::default(), [0; BLOCK_POSTINGS]);
        self.each_block(field, terms, |list, distance, key, bytes| {
            let block = Block::parse(bytes, list.last_id(key)?);
            let docs = block.and_then(|block| block.docs(&mut ids).map(|()| block.count()));
            let docs = docs.map_err(|why| Error::from(why).at(key))?;
            all.extend(ids.get(..docs).unwrap_or_default(), distance);
            Ok(true)
        })?;
        let (ids, distances) = all.into_columns();
        Ok(Node::Ids(Ids::with_distances(ids.into(), distances.map(Arc::from), score)))
    }

    /// Calls `visit` with the blocks of the terms. If `visit` returns `false`, the remaining blocks
    /// of the term are left out.
    ///
    /// The blocks of all terms are in one range, in the order of the terms. So one scan can step
    /// from the blocks of one term to those of the next. On a remote store, such a scan would fetch
    /// a page of other terms' blocks with each term. Therefore many lists are read together
    /// instead.
    pub(super) fn each_block(
        &self,
        field: FieldInfo,
        terms: &[MatchedTerm],
        mut visit: impl FnMut(&ListKeys, u8, &[u8], &[u8]) -> Result<bool>,
    ) -> Result<()> {
        let list = |of: &MatchedTerm| self.catalog.list(field, &of.term);
        if self.reader.prefetched() > 0 {
            for some in terms.chunks(LISTS_TOGETHER) {
                let lists: Vec<ListKeys> = some.iter().map(list).collect();
                let ranges: Vec<_> = lists.iter().map(|list| list.from(0)).collect();
                let pages = self.reader.range_many(&ranges, FIRST_BLOCKS)?;
                for ((matched, list), page) in some.iter().zip(&lists).zip(pages) {
                    let mut needs_more = true;
                    for (key, bytes) in page.entries {
                        needs_more = needs_more && visit(list, matched.distance, &key, &bytes)?;
                    }
                    let Some(last) = page.last.filter(|_| needs_more) else { continue };
                    let rest = list.from(list.last_id(&last)?.saturating_add(1));
                    for entry in self.reader.range(rest, Order::Ascending)? {
                        let (key, bytes) = entry?;
                        if !visit(list, matched.distance, &key, &bytes)? {
                            break;
                        }
                    }
                }
            }
            return Ok(());
        }
        let all =
            KeyRange::through(&terms.last().map(|last| list(last).blocks).unwrap_or_default());
        let mut walk = Walk::new(self.reader, Order::Ascending, 1);
        let mut next: Option<Entry<R::Bytes<'r>>> = None;
        for (number, matched) in terms.iter().enumerate() {
            let list = list(matched);
            let rest = || all.clone().intersect(KeyRange::starting_at(&list.blocks));
            next = match next {
                Some((key, bytes)) if *key >= *list.blocks => Some((key, bytes)),
                _ if number > 0 => walk.leave(rest())?,
                _ => {
                    walk.seek(rest())?;
                    walk.step()?
                }
            };
            while let Some((key, bytes)) = next.take_if(|(key, _)| list.is_block(key)) {
                if !visit(&list, matched.distance, &key, &bytes)? {
                    break;
                }
                next = walk.step()?;
            }
        }
        Ok(())
    }

    fn boolean(&self, plan: &BooleanPlan, boost: f64) -> Result<Node<'r, R>> {
        let (mut required, mut optional) = (self.all(&plan.must, boost)?, Vec::new());
        for filter in &plan.filter {
            required.push(Node::Constant(Box::new(self.build(filter, 0.0)?), 0.0));
        }
        let mut should = self.all(&plan.should, boost)?;
        if plan.least > 0 {
            required.push(match plan.least > should.len() {
                true => Node::Ids(Ids::new([].into(), 0.0)),
                false if should.len() == 1 => should.remove(0),
                false => Node::AtLeast(Box::new(AtLeast::new(should, plan.least))),
            });
        } else {
            optional = should;
        }
        let excluded = self.all(&plan.must_not, 0.0)?;
        if required.is_empty() {
            // No clause is required, so begin with all documents.
            required.push(self.ids(&self.catalog.all()?, 0.0)?);
        }
        if let ([_], [], []) = (&required[..], &optional[..], &excluded[..])
            && let Some(only) = required.pop()
        {
            return Ok(only);
        }
        Ok(Node::Boolean(Box::new(Boolean::new(required, optional, excluded))))
    }
}
