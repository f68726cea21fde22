//! The common parts of the notations: characters with their positions, and labels with their
//! limits.

use std::fmt::{self, Write};
use std::str::Chars;

use super::error::{PathError, SyntaxProblem};

/// The maximum number of labels in a path.
// PostgreSQL's ltree has the same limit, and the same limit for a label.
pub const MAX_LABELS: usize = 65_535;

/// The maximum number of characters in a label.
pub const MAX_LABEL_CHARS: usize = 1_000;

/// The number of characters of a text that an error shows.
pub(super) const SHOWN_CHARS: usize = 80;

/// Whether an unquoted label may contain this character.
pub(super) fn is_label_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// A text and a position in it.
pub(super) struct Cursor<'t> {
    notation: &'static str,
    text: &'t str,
    rest: Chars<'t>,
    /// The position, in characters, counted from 1.
    position: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(notation: &'static str, text: &'t str) -> Self {
        Self { notation, text, rest: text.chars(), position: 1 }
    }

    pub(super) fn position(&self) -> usize {
        self.position
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let next = self.rest.next();
        self.position += usize::from(next.is_some());
        next
    }

    pub(super) fn eat(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(wanted);
        if is_there {
            self.bump();
        }
        is_there
    }

    pub(super) fn error_at(&self, position: usize, problem: SyntaxProblem) -> PathError {
        let text = self.text.chars().take(SHOWN_CHARS).collect();
        PathError::Syntax { notation: self.notation, text, position, problem }
    }

    pub(super) fn error(&self, problem: SyntaxProblem) -> PathError {
        self.error_at(self.position, problem)
    }

    /// The error for the current character.
    pub(super) fn unexpected(&self) -> PathError {
        self.error(self.peek().map_or(SyntaxProblem::UnexpectedEnd, SyntaxProblem::Unexpected))
    }

    /// Refuses one more item if there are too many.
    pub(super) fn room_for_more(&self, items: usize) -> Result<(), PathError> {
        match items < MAX_LABELS {
            true => Ok(()),
            false => Err(self.error(SyntaxProblem::TooManyItems { limit: MAX_LABELS })),
        }
    }

    /// Reads a label, unquoted or quoted, if there is one.
    pub(super) fn label(&mut self) -> Result<Option<String>, PathError> {
        let label = match self.peek() {
            Some('"') => self.quoted()?,
            Some(c) if is_label_char(c) => self.bare(),
            _ => return Ok(None),
        };
        let chars = label.chars().count();
        match chars <= MAX_LABEL_CHARS {
            true => Ok(Some(label)),
            false => Err(self.error(SyntaxProblem::LabelTooLong { chars, limit: MAX_LABEL_CHARS })),
        }
    }

    fn bare(&mut self) -> String {
        let mut label = String::new();
        while let Some(c) = self.peek().filter(|c| is_label_char(*c)) {
            label.push(c);
            self.bump();
        }
        label
    }

    fn quoted(&mut self) -> Result<String, PathError> {
        self.bump();
        let mut label = String::new();
        loop {
            let at = self.position;
            match self.bump() {
                Some('"') => return Ok(label),
                Some('\\') => label.push(self.escaped(at)?),
                Some(c) => label.push(c),
                None => return Err(self.unexpected()),
            }
        }
    }

    /// Reads the escape after the backslash at a position.
    fn escaped(&mut self, at: usize) -> Result<char, PathError> {
        let bad = self.error_at(at, SyntaxProblem::BadEscape);
        match self.bump() {
            Some(c @ ('"' | '\\')) => Ok(c),
            Some('0') => Ok('\0'),
            Some('u') if self.eat('{') => self.code_point().ok_or(bad),
            _ => Err(bad),
        }
    }

    fn code_point(&mut self) -> Option<char> {
        let mut code = 0_u32;
        let mut digits = 0;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(16)) {
            code = code.checked_mul(16)?.checked_add(digit)?;
            digits += 1;
            self.bump();
        }
        (digits > 0 && self.eat('}')).then(|| char::from_u32(code)).flatten()
    }
}

/// Writes a label, in double quotes if necessary.
pub(super) fn write_label(f: &mut fmt::Formatter<'_>, label: &str) -> fmt::Result {
    if !label.is_empty() && label.chars().all(is_label_char) {
        return f.write_str(label);
    }
    f.write_char('"')?;
    for c in label.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            c if c.is_control() => write!(f, "\\u{{{:x}}}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}
