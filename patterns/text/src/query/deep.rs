//! Clone, comparison and drop of queries of any depth, without recursion. [`Query::check`] rejects
//! a deep query, but the query exists before that, and is dropped afterwards.

use std::fmt::{self, Debug, Formatter};
use std::mem;

use super::tree::{BooleanQuery, Query};

impl Query {
    /// The direct subqueries.
    fn children(&self) -> Vec<&Self> {
        match self {
            Self::Boolean(boolean) => boolean.clauses().collect(),
            Self::Boost { query, .. } | Self::ConstantScore { query, .. } => vec![query],
            _ => Vec::new(),
        }
    }

    /// Moves the direct subqueries into `into`.
    fn take_children(&mut self, into: &mut Vec<Self>) {
        match self {
            Self::Boolean(BooleanQuery { must, filter, should, must_not, .. }) => {
                for clauses in [must, filter, should, must_not] {
                    into.append(clauses);
                }
            }
            Self::Boost { query, .. } | Self::ConstantScore { query, .. } => {
                into.push(mem::replace(query, Self::All));
            }
            _ => {}
        }
    }

    /// The same query with the given copies of its children, in order.
    fn with_children(&self, children: Vec<Self>) -> Self {
        let mut children = children.into_iter();
        match self {
            Self::All => Self::All,
            Self::Term { field, text } => Self::term(field, text),
            Self::Phrase { field, text, slop } => Self::phrase(field, text).slop(*slop),
            Self::Combined { fields, text } => {
                Self::Combined { fields: fields.clone(), text: text.clone() }
            }
            Self::Near { field, near } => Self::near(field, near.clone()),
            Self::Prefix { field, prefix } => Self::prefix(field, prefix),
            Self::Wildcard { field, pattern } => {
                Self::Wildcard { field: field.clone(), pattern: pattern.clone() }
            }
            Self::Regex { field, pattern } => Self::regex(field, pattern),
            Self::Fuzzy { field, text, distance, prefix_chars } => {
                Self::fuzzy(field, text, *distance).fuzzy_prefix(*prefix_chars)
            }
            Self::Range { field, from, to } => Self::range(field, (from.clone(), to.clone())),
            Self::Boolean(boolean) => {
                let mut some = |of: &Vec<Self>| children.by_ref().take(of.len()).collect();
                Self::Boolean(BooleanQuery {
                    must: some(&boolean.must),
                    filter: some(&boolean.filter),
                    should: some(&boolean.should),
                    must_not: some(&boolean.must_not),
                    minimum_should_match: boolean.minimum_should_match,
                })
            }
            Self::Boost { factor, .. } => children.next().unwrap_or(Self::All).boost(*factor),
            Self::ConstantScore { score, .. } => {
                children.next().unwrap_or(Self::All).constant_score(*score)
            }
        }
    }

    /// Whether two queries are equal apart from their children.
    fn has_equal_root(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, Self::All) => true,
            (Self::Term { field, text }, Self::Term { field: of, text: other }) => {
                (field, text) == (of, other)
            }
            (
                Self::Phrase { field, text, slop },
                Self::Phrase { field: of, text: other, slop: by },
            ) => (field, text, slop) == (of, other, by),
            (Self::Combined { fields, text }, Self::Combined { fields: of, text: other }) => {
                (fields, text) == (of, other)
            }
            (Self::Near { field, near }, Self::Near { field: of, near: other }) => {
                (field, near) == (of, other)
            }
            (Self::Prefix { field, prefix }, Self::Prefix { field: of, prefix: other }) => {
                (field, prefix) == (of, other)
            }
            (Self::Wildcard { field, pattern }, Self::Wildcard { field: of, pattern: other })
            | (Self::Regex { field, pattern }, Self::Regex { field: of, pattern: other }) => {
                (field, pattern) == (of, other)
            }
            (
                Self::Fuzzy { field, text, distance, prefix_chars },
                Self::Fuzzy { field: of, text: other, distance: by, prefix_chars: equal },
            ) => (field, text, distance, prefix_chars) == (of, other, by, equal),
            (
                Self::Range { field, from, to },
                Self::Range { field: of, from: other, to: until },
            ) => (field, from, to) == (of, other, until),
            (Self::Boolean(one), Self::Boolean(other)) => {
                let counts = |of: &BooleanQuery| {
                    [&of.must, &of.filter, &of.should, &of.must_not].map(Vec::len)
                };
                one.minimum_should_match == other.minimum_should_match
                    && counts(one) == counts(other)
            }
            (Self::Boost { factor, .. }, Self::Boost { factor: other, .. }) => factor == other,
            (Self::ConstantScore { score, .. }, Self::ConstantScore { score: other, .. }) => {
                score == other
            }
            _ => false,
        }
    }
}

impl Clone for Query {
    fn clone(&self) -> Self {
        // Each query is visited before its children, and built after them.
        let (mut open, mut made) = (vec![(self, false)], Vec::new());
        while let Some((query, is_visited)) = open.pop() {
            let children = query.children();
            if is_visited || children.is_empty() {
                let copies = made.split_off(made.len() - children.len());
                made.push(query.with_children(copies));
            } else {
                open.push((query, true));
                open.extend(children.into_iter().rev().map(|child| (child, false)));
            }
        }
        made.pop().unwrap_or(Self::All)
    }
}

impl PartialEq for Query {
    fn eq(&self, other: &Self) -> bool {
        let mut open = vec![(self, other)];
        while let Some((one, other)) = open.pop() {
            if !one.has_equal_root(other) {
                return false;
            }
            open.extend(one.children().into_iter().zip(other.children()));
        }
        true
    }
}

impl Drop for Query {
    fn drop(&mut self) {
        let mut open = Vec::new();
        self.take_children(&mut open);
        while let Some(mut query) = open.pop() {
            query.take_children(&mut open);
        }
    }
}

/// Prints `Query(…)` with the query language in the parentheses, as [`Display`](fmt::Display)
/// prints it.
impl Debug for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Query({self})")
    }
}
