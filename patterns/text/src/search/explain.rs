//! Explanations of scores.

use std::fmt;

use keyloom::{Reader, Result};

use super::build::Builder;
use super::combined::CombinedStatistics;
use super::node::Node;
use super::plan::{BooleanPlan, CombinedField, Plan};
use crate::index::{Catalog, FieldInfo, LENGTHS};

/// How the score of a document is computed, as a tree: [`Display`](fmt::Display) prints one line
/// per part.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// The score of this part; `None` if the document does not match the part.
    pub score: Option<f64>,
    /// The part of the query, with the numbers that its score is computed from.
    pub description: String,
    /// The subparts of this part.
    pub details: Vec<Explanation>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.print(f, 0)
    }
}

impl Explanation {
    fn print(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        let score = self.score.map_or("no match".to_owned(), |score| format!("{score:.6}"));
        writeln!(f, "{:indent$}{score} = {}", "", self.description, indent = 2 * depth)?;
        self.details.iter().try_for_each(|part| part.print(f, depth + 1))
    }
}

impl<C: Catalog, R: Reader> Builder<'_, '_, C, R> {
    /// Explains the score of a document. Costs about as much as a search for each part of the plan.
    ///
    /// # Errors
    /// Any error of the store.
    pub(crate) fn explain(&self, plan: &Plan, boost: f64, doc: u32) -> Result<Explanation> {
        let mut node = self.build(plan, boost)?;
        let score = match node.seek(doc)? == doc {
            true => Some(node.score()?),
            false => None,
        };
        let (description, details) = match plan {
            Plan::None => ("no document".to_owned(), Vec::new()),
            Plan::All => (format!("all documents, {boost}"), Vec::new()),
            Plan::Term { field, term } if term == LENGTHS => {
                (format!("any term of {:?}", self.catalog.field_name(field.number)), Vec::new())
            }
            Plan::Term { field, term } => {
                (self.of_term(*field, term, boost, &mut node, doc)?, Vec::new())
            }
            Plan::Near { field, slots, proximity } => {
                let idf = self.phrase_idf(*field, slots);
                let what = format!("{slots:?} near each other, {:?}", proximity.arrangement);
                let slop = proximity.slop;
                (format!("{what}, slop {slop}: boost {boost} · idf {idf}"), Vec::new())
            }
            Plan::Spans { field, shape } => {
                let idf = self.spans_idf(*field, shape);
                (format!("spans near each other: boost {boost} · idf {idf}"), Vec::new())
            }
            Plan::Combined { word, fields } => {
                self.of_combined(word, fields, boost, &mut node, doc)?
            }
            Plan::Terms { field, terms } => {
                let name = self.catalog.field_name(field.number);
                let many = terms.len();
                (format!("any of {many} terms of {name:?}: {boost} / (1 + distance)"), Vec::new())
            }
            Plan::AtLeast { least, operands } => {
                let what = format!("the sum of at least {least} of");
                (what, self.explain_all(operands, boost, doc)?)
            }
            Plan::Boolean(boolean) => self.of_boolean(boolean, boost, doc)?,
            Plan::Boost(plan, factor) => {
                (format!("boost {factor}"), vec![self.explain(plan, boost * factor, doc)?])
            }
            Plan::Constant(plan, score) => {
                let what = format!("constant score {score} · boost {boost}");
                (what, vec![self.explain(plan, 0.0, doc)?])
            }
        };
        Ok(Explanation { score, description, details })
    }

    fn explain_all(&self, plans: &[Plan], boost: f64, doc: u32) -> Result<Vec<Explanation>> {
        plans.iter().map(|plan| self.explain(plan, boost, doc)).collect()
    }

    fn of_term(
        &self,
        field: FieldInfo,
        term: &str,
        boost: f64,
        node: &mut Node<'_, R>,
        doc: u32,
    ) -> Result<String> {
        let statistics = self.statistics.field(field.number);
        let with_term = self.statistics.documents(field.number, term);
        let idf = statistics.idf(with_term);
        let name = self.catalog.field_name(field.number);
        let mut text = format!(
            "term {term:?} of {name:?}: boost {boost} · idf {idf:.6} ({with_term} of {} documents)",
            statistics.documents
        );
        if let Node::Term(cursor) = node
            && cursor.doc() == doc
        {
            let (frequency, length) = cursor.frequency_and_length()?;
            let part = cursor.weight.saturation(f64::from(frequency), f64::from(length));
            text.push_str(&format!(
                " · {part:.6} (frequency {frequency}, length {length}, average length {:.3})",
                statistics.average()
            ));
        }
        Ok(text)
    }

    fn of_combined(
        &self,
        word: &str,
        fields: &[CombinedField],
        boost: f64,
        node: &mut Node<'_, R>,
        doc: u32,
    ) -> Result<(String, Vec<Explanation>)> {
        let of_all = CombinedStatistics::of(self.statistics, fields);
        let (idf, CombinedStatistics { documents, with_term, average }) = (of_all.idf(), of_all);
        let mut text = format!(
            "word {word:?} of combined fields: boost {boost} · idf {idf:.6} ({with_term} of {documents} documents)"
        );
        let Node::Combined(combined) = node else { return Ok((text, Vec::new())) };
        if combined.doc() != doc {
            return Ok((text, Vec::new()));
        }
        let (mut details, mut frequency, mut length) = (Vec::new(), 0.0, 0.0);
        for (n, CombinedField { field, weight, terms }) in fields.iter().enumerate() {
            let (of_field, len) = combined.numbers(n)?;
            frequency += weight * f64::from(of_field);
            length += weight * f64::from(len);
            let name = self.catalog.field_name(field.number);
            let description =
                format!("weight of {name:?}: frequency {of_field} of {terms:?}, length {len}");
            details.push(Explanation { score: Some(*weight), description, details: Vec::new() });
        }
        let part = combined.weight().saturation(frequency, length);
        text.push_str(&format!(
            " · {part:.6} (weighted frequency {frequency}, length {length}, average length {average:.3})"
        ));
        Ok((text, details))
    }

    fn of_boolean(
        &self,
        plan: &BooleanPlan,
        boost: f64,
        doc: u32,
    ) -> Result<(String, Vec<Explanation>)> {
        let mut details = self.explain_all(&plan.must, boost, doc)?;
        details.extend(self.explain_all(&plan.should, boost, doc)?);
        details.extend(self.explain_all(&plan.filter, 0.0, doc)?);
        let excluded = self.explain_all(&plan.must_not, 0.0, doc)?;
        details.extend(excluded.into_iter().map(|part| Explanation {
            description: format!("must not match: {}", part.description),
            ..part
        }));
        let counts = [plan.must.len(), plan.should.len(), plan.filter.len(), plan.must_not.len()];
        let [must, should, filter, must_not] = counts;
        let least = plan.least;
        Ok((
            format!(
                "the sum of {must} must and {should} should, of which at least {least} match; {filter} filters; {must_not} must not"
            ),
            details,
        ))
    }
}
