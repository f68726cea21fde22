//! Prints queries in the query language.

use std::fmt::{self, Display, Formatter, Write};
use std::ops::Bound;

use super::build::bound_text;
use super::check::is_too_deep;
use super::tree::{BooleanQuery, Near, Query, Spans};
use super::wildcard::{WildcardPart, parts};

/// The maximum depth of a query that is printed. The depth is limited because printing is
/// recursive.
const PRINTED_LEVELS: usize = 300;

/// Words with a meaning in the query language.
pub(super) const RESERVED: [&str; 8] =
    ["AND", "OR", "NOT", "TO", "NEAR", "ORDERED", "ANY", "COMBINED"];

/// Whether a character of a bare word needs a backslash.
pub(super) fn is_special(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "+-#|&!(){}[]^\"~*?:\\/<>=,".contains(c)
}

/// A word. An empty word is printed as an empty pair of quotation marks.
struct Word<'w>(&'w str);

impl Display for Word<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("\"\"") } else { Letters(self.0).fmt(f) }
    }
}

/// A word or a part of one, with a backslash before each special character.
struct Letters<'w>(&'w str);

impl Display for Letters<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if RESERVED.contains(&self.0) {
            f.write_char('\\')?;
        }
        for c in self.0.chars() {
            if is_special(c) {
                f.write_char('\\')?;
            }
            f.write_char(c)?;
        }
        Ok(())
    }
}

/// A text in quotation marks.
struct Quoted<'t>(&'t str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            if matches!(c, '"' | '\\') {
                f.write_char('\\')?;
            }
            f.write_char(c)?;
        }
        f.write_char('"')
    }
}

/// Prints the query in the query language. Texts are never shortened. A query of more than 300
/// levels is printed as `[more than 300 levels]`.
impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if is_too_deep(self, PRINTED_LEVELS) {
            // The printed text is a range without `TO`, so the parser rejects it.
            return write!(f, "[more than {PRINTED_LEVELS} levels]");
        }
        match self {
            Self::Boolean(boolean) if stands_alone(boolean) => clauses(boolean, f),
            _ => operand(self, f),
        }
    }
}

/// Prints a query as an operand of others: combinations are in parentheses.
fn operand(query: &Query, f: &mut Formatter<'_>) -> fmt::Result {
    match query {
        Query::All => f.write_str("*:*"),
        Query::Term { field, text } => write!(f, "{}:{}", Word(field), Word(text)),
        Query::Phrase { field, text, slop } => {
            write!(f, "{}:{}", Word(field), Quoted(text))?;
            suffix(f, *slop)
        }
        Query::Combined { fields, text } => combined(fields, text, f),
        Query::Near { field, near } => write!(f, "{}:{near}", Word(field)),
        Query::Prefix { field, prefix } => write!(f, "{}:{}*", Word(field), Letters(prefix)),
        Query::Wildcard { field, pattern } => match &Query::wildcard(field, pattern) {
            Query::Wildcard { field, pattern } => wildcard(field, pattern, f),
            simpler => operand(simpler, f),
        },
        Query::Regex { field, pattern } => regex(field, pattern, f),
        Query::Fuzzy { field, text, distance, prefix_chars } => {
            write!(f, "{}:{}~{distance}", Word(field), Letters(text))?;
            if *prefix_chars > 0 {
                write!(f, "/{prefix_chars}")?;
            }
            Ok(())
        }
        Query::Range { field, from, to } => {
            write!(f, "{}:", Word(field))?;
            range(from, to, f)
        }
        Query::Boolean(boolean) => {
            f.write_char('(')?;
            clauses(boolean, f)?;
            f.write_char(')')?;
            match boolean.minimum_should_match {
                Some(count) => write!(f, "~{count}"),
                None => Ok(()),
            }
        }
        Query::Boost { query, factor } => {
            scored(query, f)?;
            write!(f, "^{factor}")
        }
        Query::ConstantScore { query, score } => {
            scored(query, f)?;
            write!(f, "^={score}")
        }
    }
}

/// Prints the fields and the text. Weights other than 1 are printed.
fn combined(fields: &[(String, f32)], text: &str, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str("COMBINED(")?;
    for (at, (field, weight)) in fields.iter().enumerate() {
        if at > 0 {
            f.write_char(' ')?;
        }
        Word(field).fmt(f)?;
        if *weight != 1.0 {
            write!(f, "^{weight}")?;
        }
    }
    write!(f, "):{}", Quoted(text))
}

fn wildcard(field: &str, pattern: &str, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "{}:", Word(field))?;
    parts(pattern).iter().try_for_each(|part| match part {
        WildcardPart::Text(text) => Letters(text).fmt(f),
        WildcardPart::One => f.write_char('?'),
        WildcardPart::Any => f.write_char('*'),
    })
}

/// Prints a regular expression. Slashes that are not escaped yet get a backslash.
fn regex(field: &str, pattern: &str, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "{}:/", Word(field))?;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '/' => f.write_str("\\/")?,
            // A single backslash at the end would escape the closing slash. Such an expression is
            // invalid.
            '\\' => write!(f, "\\{}", chars.next().unwrap_or('\\'))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('/')
}

/// Prints the query before a boost or constant score. The grammar allows only one score per clause.
fn scored(query: &Query, f: &mut Formatter<'_>) -> fmt::Result {
    let has_score = matches!(query, Query::Boost { .. } | Query::ConstantScore { .. });
    if !has_score {
        return operand(query, f);
    }
    f.write_char('(')?;
    operand(query, f)?;
    f.write_char(')')
}

fn clauses(boolean: &BooleanQuery, f: &mut Formatter<'_>) -> fmt::Result {
    let BooleanQuery { must, filter, should, must_not, minimum_should_match } = boolean;
    let is_any_of = should.len() > 1
        && must.len() + filter.len() + must_not.len() == 0
        && minimum_should_match.is_none();
    let groups = [('+', must), ('#', filter), ('|', should), ('-', must_not)];
    let clauses = groups.into_iter().flat_map(|(sign, of)| of.iter().map(move |q| (sign, q)));
    for (at, (sign, query)) in clauses.enumerate() {
        if at > 0 {
            f.write_str(if is_any_of { " OR " } else { " " })?;
        }
        if !is_any_of {
            f.write_char(sign)?;
        }
        operand(query, f)?;
    }
    Ok(())
}

/// Whether a combination needs no parentheses at the top level.
fn stands_alone(boolean: &BooleanQuery) -> bool {
    boolean.minimum_should_match.is_none() && boolean.clauses().next().is_some()
}

fn range(from: &Bound<String>, to: &Bound<String>, f: &mut Formatter<'_>) -> fmt::Result {
    let is_exclusive = |bound: &Bound<String>| matches!(bound, Bound::Excluded(_));
    f.write_char(if is_exclusive(from) { '{' } else { '[' })?;
    bound(from, f)?;
    f.write_str(" TO ")?;
    bound(to, f)?;
    f.write_char(if is_exclusive(to) { '}' } else { ']' })
}

fn bound(bound: &Bound<String>, f: &mut Formatter<'_>) -> fmt::Result {
    match bound_text(bound) {
        None => f.write_char('*'),
        Some(text) => Word(text).fmt(f),
    }
}

/// Prints the slop, if there is any.
fn suffix(f: &mut Formatter<'_>, slop: u32) -> fmt::Result {
    if slop > 0 { write!(f, "~{slop}") } else { Ok(()) }
}

impl Display for Near {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_ordered { "ORDERED" } else { "NEAR" })?;
        list(&self.spans, f)?;
        suffix(f, self.slop)
    }
}

impl Display for Spans {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Term(text) => Word(text).fmt(f),
            Self::Phrase(text) => Quoted(text).fmt(f),
            Self::AnyOf(spans) => {
                f.write_str("ANY")?;
                list(spans, f)
            }
            Self::Near(near) => near.fmt(f),
        }
    }
}

fn list(spans: &[Spans], f: &mut Formatter<'_>) -> fmt::Result {
    f.write_char('(')?;
    for (at, spans) in spans.iter().enumerate() {
        if at > 0 {
            f.write_char(' ')?;
        }
        spans.fmt(f)?;
    }
    f.write_char(')')
}
