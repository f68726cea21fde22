//! The language in which keys and prefixes are written: `("orders", 7, _, 2026..)`.

use std::fmt;

use keyloom::key::Element;

use crate::word::{NAMED, bytes_of_hex, of_word};

/// The deepest nesting of tuples. A key of 511 bytes cannot nest deeper.
const MOST_NESTED: usize = 256;

/// One element of a pattern.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// This element.
    Exact(Element),
    /// `_`: any element.
    Any,
    /// `a..b`: the elements from `a` on and before `b`.
    Range(Option<Element>, Option<Element>),
}

/// A key or a prefix as the user wrote it.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// `0x00ff`: bytes.
    Raw(Vec<u8>),
    /// A tuple.
    Tuple(Vec<Item>),
}

/// Why a text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The number of characters before the error.
    at: usize,
    why: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} characters: {}", self.at, self.why)
    }
}

type Parsed<T> = Result<T, ParseError>;

impl Pattern {
    /// Parses `text`. A single element needs no parentheses.
    pub fn parse(text: &str) -> Parsed<Self> {
        let mut input = Parser { text, at: 0 };
        input.space();
        if let Some(hex) = input.rest().strip_prefix("0x") {
            return match bytes_of_hex(hex.trim_end()) {
                Some(bytes) => Ok(Self::Raw(bytes)),
                None => Err(input.error("0x is followed by pairs of hexadecimal digits")),
            };
        }
        let items = match input.rest().starts_with('(') {
            true => input.list(Parser::item)?,
            false => vec![input.item()?],
        };
        input.space();
        match input.rest() {
            "" => input.checked(items).map(Self::Tuple),
            _ => Err(input
                .error("the text continues after the key; write several elements in parentheses")),
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn error(&self, why: impl Into<String>) -> ParseError {
        let before = self.text.get(..self.at).unwrap_or_default();
        ParseError { at: before.chars().count(), why: why.into() }
    }

    fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, token: &str) -> bool {
        let is_next = self.rest().starts_with(token);
        self.at += if is_next { token.len() } else { 0 };
        is_next
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// A list in parentheses. A comma may follow the last element.
    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.eat("(");
        let mut all = Vec::new();
        loop {
            self.space();
            if self.eat(")") {
                return Ok(all);
            }
            all.push(one(self)?);
            self.space();
            if !self.eat(",") && !self.rest().starts_with(')') {
                return Err(self.error("expected , or )"));
            }
        }
    }

    fn item(&mut self) -> Parsed<Item> {
        self.space();
        if self.word() == "_" {
            self.at += 1;
            return Ok(Item::Any);
        }
        let start = match self.rest().starts_with("..") {
            true => None,
            false => Some(self.element(0)?),
        };
        match (start, self.eat("..")) {
            (start, true) => Ok(Item::Range(start, self.end_of_range()?)),
            (Some(element), false) => Ok(Item::Exact(element)),
            (None, false) => Err(self.error("expected an element")),
        }
    }

    fn end_of_range(&mut self) -> Parsed<Option<Element>> {
        match self.rest().trim_start().chars().next() {
            None | Some(',' | ')') => Ok(None),
            Some(_) => self.element(0).map(Some),
        }
    }

    /// Returns an error if an item other than `_` follows a range.
    fn checked(&self, items: Vec<Item>) -> Parsed<Vec<Item>> {
        let after = items.iter().skip_while(|item| !matches!(item, Item::Range(..))).skip(1);
        match after.clone().all(|item| *item == Item::Any) {
            true => Ok(items),
            false => Err(self.error("only _ may follow a range")),
        }
    }

    fn element(&mut self, depth: usize) -> Parsed<Element> {
        self.space();
        if depth > MOST_NESTED {
            return Err(self.error("the tuples are nested too deeply"));
        }
        if self.eat("\"") {
            return self.string().map(Element::Str);
        }
        if self.eat("x\"") {
            let hex = self.until('"')?;
            let bytes = bytes_of_hex(hex).map(Element::Bytes);
            return bytes.ok_or_else(|| self.error("x\"…\" holds pairs of hexadecimal digits"));
        }
        if self.eat("b\"") {
            return self.escaped_bytes().map(Element::Bytes);
        }
        if self.rest().starts_with('(') {
            return self.list(|input| input.element(depth + 1)).map(Element::Tuple);
        }
        if self.eat("desc(") {
            let element = self.element(depth + 1)?;
            self.space();
            return match self.eat(")") {
                true => Ok(Element::Desc(Box::new(element))),
                false => Err(self.error("expected )")),
            };
        }
        self.named()
    }

    /// The forms `versionstamp(…)`, `nan(…)`, `nan32(…)`, and plain words.
    fn named(&mut self) -> Parsed<Element> {
        let start = self.at;
        for (name, make) in NAMED {
            if self.eat(name) {
                let element = bytes_of_hex(self.until(')')?).and_then(|bytes| make(&bytes));
                return element.ok_or_else(|| self.error("wrong number of hexadecimal digits"));
            }
        }
        let word = self.word();
        self.at = start + word.len();
        of_word(word)
            .map_err(|why| ParseError { at: self.error("").at - word.chars().count(), why })
    }

    /// The next word, which ends before `..`.
    fn word(&self) -> &'t str {
        let rest = self.rest();
        let is_part = |one: char| one.is_alphanumeric() || "+-_.".contains(one);
        let end = rest.find(|one| !is_part(one)).unwrap_or(rest.len());
        let end = rest.find("..").map_or(end, |dots| end.min(dots));
        rest.get(..end).unwrap_or_default()
    }

    fn until(&mut self, end: char) -> Parsed<&'t str> {
        match self.rest().split_once(end) {
            Some((before, _)) => {
                self.at += before.len() + end.len_utf8();
                Ok(before)
            }
            None => Err(self.error(format!("the closing {end} is missing"))),
        }
    }

    fn string(&mut self) -> Parsed<String> {
        let mut text = String::new();
        loop {
            match self.next() {
                None => return Err(self.error("the closing quote is missing")),
                Some('"') => return Ok(text),
                Some('\\') => text.push(self.escape()?),
                Some(other) => text.push(other),
            }
        }
    }

    /// An escape of Rust, after the backslash.
    fn escape(&mut self) -> Parsed<char> {
        match self.next() {
            Some('n') => Ok('\n'),
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some('0') => Ok('\0'),
            Some(same @ ('"' | '\'' | '\\')) => Ok(same),
            Some('u') if self.eat("{") => {
                let hex = self.until('}')?;
                let found = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32);
                found.ok_or_else(|| self.error("\\u{…} holds the number of a character"))
            }
            _ => Err(self.error("the escapes are \\n \\r \\t \\0 \\\" \\\\ and \\u{…}")),
        }
    }

    /// Bytes as the errors of the library show them: `b"a\xff"`.
    fn escaped_bytes(&mut self) -> Parsed<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            match self.next() {
                None => return Err(self.error("the closing quote is missing")),
                Some('"') => return Ok(bytes),
                Some('\\') if self.eat("x") => {
                    let hex = self.rest().get(..2).and_then(bytes_of_hex);
                    bytes.extend(hex.ok_or_else(|| self.error("\\x has two digits"))?);
                    self.at += 2;
                }
                Some('\\') => bytes.extend(self.escape()?.to_string().as_bytes()),
                Some(other) => bytes.extend(other.to_string().as_bytes()),
            }
        }
    }
}
