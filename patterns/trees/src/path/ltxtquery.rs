//! Conditions on the labels of a path, in any position: `ltxtquery`.

use std::fmt::{self, Write};
use std::str::FromStr;

use smallvec::SmallVec;

use super::error::{PathError, SyntaxProblem};
use super::label_path::LabelPath;
use super::syntax::Cursor;
use super::word::Word;

/// A condition on the labels of a path, in any position, like PostgreSQL's `ltxtquery`: words
/// joined by `&`, `|` and `!`, with parentheses. `!` binds most tightly and `|` least. Words take
/// the modifiers of an [`Lquery`](super::Lquery); white space between words and operators is
/// ignored.
///
/// ```
/// use keyloom_trees::path::{LabelPath, Ltxtquery};
/// let query: Ltxtquery = "Europe & Russia*@ & !Transportation".parse()?;
/// assert!(query.matches(&"Europe.trips.russian_federation".parse()?));
/// assert!(!query.matches(&"Europe.Transportation.Russia".parse()?));
/// assert_eq!("a&(b|c)&!d".parse::<Ltxtquery>()?.to_string(), "a & (b | c) & !d");
/// # Ok::<(), keyloom_trees::path::PathError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ltxtquery {
    condition: Condition,
    words: Vec<Word>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Condition {
    /// The word with this index is present.
    Word(usize),
    Not(Box<Condition>),
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

/// The maximum nesting depth of parentheses and negations.
const MAX_DEPTH: usize = 100;

/// The words found in the labels so far, one bit each.
pub(super) type Seen = SmallVec<[u64; 1]>;

impl Ltxtquery {
    /// Whether `path` matches: `path @ self`.
    pub fn matches(&self, path: &LabelPath) -> bool {
        let seen = path.labels().fold(self.start(), |seen, label| self.step(&seen, label));
        self.is_match(&seen)
    }

    /// The state before the first label.
    pub(super) fn start(&self) -> Seen {
        SmallVec::from_elem(0, self.words.len().div_ceil(64))
    }

    /// The state after one more label.
    pub(super) fn step(&self, seen: &Seen, label: &str) -> Seen {
        let mut seen = seen.clone();
        for (words, bits) in self.words.chunks(64).zip(&mut seen) {
            for (at, word) in words.iter().enumerate() {
                if *bits & (1 << at) == 0 && word.matches(label) {
                    *bits |= 1 << at;
                }
            }
        }
        seen
    }

    /// Whether the labels so far match.
    pub(super) fn is_match(&self, seen: &Seen) -> bool {
        self.condition.value(&|word| Some(is_seen(seen, word))) == Some(true)
    }

    /// `Some` if the result is the same for all continuations of the labels so far.
    pub(super) fn is_certain(&self, seen: &Seen) -> Option<bool> {
        // A word that is present stays present; other words may still follow.
        self.condition.value(&|word| is_seen(seen, word).then_some(true))
    }
}

fn is_seen(seen: &Seen, word: usize) -> bool {
    seen.get(word / 64).is_some_and(|bits| bits & (1 << (word % 64)) != 0)
}

impl Condition {
    /// Whether the condition holds, as far as the known words determine it.
    fn value(&self, word: &impl Fn(usize) -> Option<bool>) -> Option<bool> {
        let unless = |conditions: &[Self], ending: bool| {
            let mut outcome = Some(!ending);
            for condition in conditions {
                match condition.value(word) {
                    Some(value) if value == ending => return Some(ending),
                    Some(_) => {}
                    None => outcome = None,
                }
            }
            outcome
        };
        match self {
            Self::Word(number) => word(*number),
            Self::Not(condition) => condition.value(word).map(|value| !value),
            Self::All(conditions) => unless(conditions, false),
            Self::Any(conditions) => unless(conditions, true),
        }
    }
}

impl FromStr for Ltxtquery {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let cursor = Cursor::new("ltxtquery", text);
        let mut parser = Parser { cursor, words: Vec::new(), depth: 0 };
        let condition = parser.any()?;
        match parser.cursor.peek() {
            None => Ok(Self { condition, words: parser.words }),
            Some(_) => Err(parser.cursor.unexpected()),
        }
    }
}

struct Parser<'t> {
    cursor: Cursor<'t>,
    words: Vec<Word>,
    depth: usize,
}

impl Parser<'_> {
    fn any(&mut self) -> Result<Condition, PathError> {
        self.joined_by('|', Self::all, Condition::Any)
    }

    fn all(&mut self) -> Result<Condition, PathError> {
        self.joined_by('&', Self::operand, Condition::All)
    }

    fn joined_by(
        &mut self,
        operator: char,
        part: fn(&mut Self) -> Result<Condition, PathError>,
        join: fn(Vec<Condition>) -> Condition,
    ) -> Result<Condition, PathError> {
        let first = part(self)?;
        let mut parts = vec![];
        while self.cursor.eat(operator) {
            parts.push(part(self)?);
        }
        if parts.is_empty() {
            return Ok(first);
        }
        parts.insert(0, first);
        Ok(join(parts))
    }

    /// Reads a word, a negation or a parenthesis, and the surrounding white space.
    fn operand(&mut self) -> Result<Condition, PathError> {
        self.skip_space();
        let operand = match self.cursor.peek() {
            Some('!') => self.deeper(|parser| Ok(Condition::Not(Box::new(parser.operand()?))))?,
            Some('(') => self.deeper(Self::in_parentheses)?,
            _ => self.word()?,
        };
        self.skip_space();
        Ok(operand)
    }

    fn in_parentheses(&mut self) -> Result<Condition, PathError> {
        let condition = self.any()?;
        match self.cursor.eat(')') {
            true => Ok(condition),
            false => Err(self.cursor.unexpected()),
        }
    }

    fn word(&mut self) -> Result<Condition, PathError> {
        let Some(label) = self.cursor.label()? else { return Err(self.cursor.unexpected()) };
        self.cursor.room_for_more(self.words.len())?;
        let word = Word::with_modifiers(label, &mut self.cursor);
        self.words.push(word);
        Ok(Condition::Word(self.words.len() - 1))
    }

    /// Reads one character, and then the nested condition after it.
    fn deeper(
        &mut self,
        nested: impl FnOnce(&mut Self) -> Result<Condition, PathError>,
    ) -> Result<Condition, PathError> {
        if self.depth >= MAX_DEPTH {
            return Err(self.cursor.error(SyntaxProblem::NestedTooDeep { limit: MAX_DEPTH }));
        }
        self.cursor.bump();
        self.depth += 1;
        let condition = nested(self)?;
        self.depth -= 1;
        Ok(condition)
    }

    fn skip_space(&mut self) {
        while self.cursor.peek().is_some_and(char::is_whitespace) {
            self.cursor.bump();
        }
    }
}

impl fmt::Display for Ltxtquery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &self.condition)
    }
}

impl Ltxtquery {
    fn write(&self, f: &mut fmt::Formatter<'_>, condition: &Condition) -> fmt::Result {
        match condition {
            Condition::Word(number) => match self.words.get(*number) {
                Some(word) => write!(f, "{word}"),
                None => Ok(()),
            },
            Condition::Not(condition) => {
                f.write_char('!')?;
                self.write_part(f, condition, |part| {
                    !matches!(part, Condition::Word(_) | Condition::Not(_))
                })
            }
            Condition::All(parts) => self.write_joined(f, parts, " & ", |part| {
                matches!(part, Condition::All(_) | Condition::Any(_))
            }),
            Condition::Any(parts) => {
                self.write_joined(f, parts, " | ", |part| matches!(part, Condition::Any(_)))
            }
        }
    }

    fn write_joined(
        &self,
        f: &mut fmt::Formatter<'_>,
        parts: &[Condition],
        operator: &str,
        in_parentheses: fn(&Condition) -> bool,
    ) -> fmt::Result {
        for (at, part) in parts.iter().enumerate() {
            f.write_str(if at > 0 { operator } else { "" })?;
            self.write_part(f, part, in_parentheses)?;
        }
        Ok(())
    }

    fn write_part(
        &self,
        f: &mut fmt::Formatter<'_>,
        part: &Condition,
        in_parentheses: fn(&Condition) -> bool,
    ) -> fmt::Result {
        if !in_parentheses(part) {
            return self.write(f, part);
        }
        f.write_char('(')?;
        self.write(f, part)?;
        f.write_char(')')
    }
}
