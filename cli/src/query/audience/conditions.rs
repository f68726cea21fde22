//! Conditions on the fields of records: `town=London and not level<3`.

use keyloom::key::Element;

use crate::failure::{Failure, Result};
use crate::selection::{element_or_text, one_key};
use crate::words::{unquoted, word};

/// An example, for error messages.
pub const EXAMPLE: &str = "such as 'town=London and level>=3', '(town=Rome or town=Lon*) and not site=\"a.org\"' or 'town=null'";
/// The deepest nesting of conditions. Each level takes a frame of the stack.
const MOST_NESTED: usize = 100;

/// A condition.
#[derive(Debug, PartialEq)]
pub enum Condition {
    /// All of these.
    All(Vec<Self>),
    /// Any of these.
    Any(Vec<Self>),
    Not(Box<Self>),
    /// A comparison of a field with a value.
    Field(String, Comparison, Value),
}

/// How the value of a field compares with the value of the condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The value of a condition.
#[derive(Debug, PartialEq)]
pub enum Value {
    Exactly(Element),
    /// The texts that begin with this text.
    Beginning(String),
}

const COMPARISONS: [(&str, Comparison); 5] = [
    // The longer operators come first, because `<` is the beginning of `<=`.
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
    ("=", Comparison::Equal),
];

impl Condition {
    /// Parses a condition.
    pub fn parse(text: &str) -> Result<Self> {
        let mut parser = Parser { all: text, rest: text.trim_start(), depth: 0 };
        let condition = parser.any()?;
        match parser.rest {
            "" => Ok(condition),
            _ => Err(parser.error("expected and, or, or the end")),
        }
    }
}

struct Parser<'t> {
    all: &'t str,
    rest: &'t str,
    depth: usize,
}

impl Parser<'_> {
    fn error(&self, why: &str) -> Failure {
        let at = self.all.chars().count() - self.rest.chars().count();
        Failure::new(format!(
            "the condition after {at} characters: {why}; a condition is {EXAMPLE}"
        ))
    }

    /// If `text` follows, skips it and the space after it. Returns whether it followed.
    fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    /// If the word `and`, `or` or `not` that is expected follows, skips it. Returns whether it
    /// followed.
    fn eat_word(&mut self, expected: &str) -> bool {
        let (first, rest) = word(self.rest, &['(', ')', '=', '<', '>']);
        let is_expected = first.eq_ignore_ascii_case(expected);
        if is_expected {
            self.rest = rest.trim_start();
        }
        is_expected
    }

    fn any(&mut self) -> Result<Condition> {
        let mut all = vec![self.all()?];
        while self.eat_word("or") {
            all.push(self.all()?);
        }
        Ok(single(all, Condition::Any))
    }

    fn all(&mut self) -> Result<Condition> {
        let mut all = vec![self.one()?];
        while self.eat_word("and") {
            all.push(self.one()?);
        }
        Ok(single(all, Condition::All))
    }

    fn one(&mut self) -> Result<Condition> {
        self.depth += 1;
        if self.depth > MOST_NESTED {
            return Err(self.error("it is nested too deeply"));
        }
        let condition = if self.eat_word("not") {
            Condition::Not(Box::new(self.one()?))
        } else if self.eat("(") {
            let condition = self.any()?;
            if !self.eat(")") {
                return Err(self.error("expected )"));
            }
            condition
        } else {
            self.field()?
        };
        self.depth -= 1;
        Ok(condition)
    }

    fn field(&mut self) -> Result<Condition> {
        let (name, rest) = word(self.rest, &['(', ')', '=', '<', '>']);
        if name.is_empty() {
            return Err(self.error("expected the name of a field"));
        }
        let name = unquoted(name)?;
        self.rest = rest.trim_start();
        let comparison = COMPARISONS.into_iter().find(|(text, _)| self.eat(text));
        let Some((_, comparison)) = comparison else {
            return Err(self.error(&format!("expected =, <, <=, > or >= after {name:?}")));
        };
        let (value, rest) = word(self.rest, &[')']);
        if value.is_empty() {
            return Err(self.error(&format!("expected a value of {name:?}")));
        }
        self.rest = rest.trim_start();
        let value = match value.strip_suffix('*') {
            Some(beginning) => Value::Beginning(unquoted(beginning)?),
            None => Value::Exactly(element(value)?),
        };
        match (&value, comparison) {
            (Value::Beginning(_), other) if other != Comparison::Equal => {
                Err(self.error("only = takes the beginning of a text"))
            }
            _ => Ok(Condition::Field(name, comparison, value)),
        }
    }
}

/// The element that a word stands for. A word is an element in the language of keys, or a text
/// without quotes.
fn element(word: &str) -> Result<Element> {
    if word.starts_with(['"', '(']) {
        one_key(word)?;
    }
    Ok(element_or_text(word))
}

fn single(mut all: Vec<Condition>, many: fn(Vec<Condition>) -> Condition) -> Condition {
    match all.len() {
        1 => all.swap_remove(0),
        _ => many(all),
    }
}
