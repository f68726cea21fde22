//! Paths into a document.

use std::fmt;
use std::str::FromStr;

use keyloom::{Error, Result};
use serde_json::Value;

use super::JsonError;

/// A path to values of a document; see the [module](super#paths).
///
/// ```
/// use keyloom_documents::json::JsonPath;
/// use serde_json::json;
/// let path: JsonPath = "items[].sku".parse()?;
/// let order = json!({ "items": [{ "sku": "tea" }, {}, { "sku": "cup" }] });
/// assert_eq!(path.values(&order), [&json!("tea"), &json!("cup")]);
/// let error = "items[.sku".parse::<JsonPath>().unwrap_err().to_string();
/// assert!(error.contains("at byte 6"), "{error}");
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JsonPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Step {
    Field(String),
    Each,
    At(usize),
}

impl JsonPath {
    /// The values at this path, in the order of the document.
    pub fn values<'v>(&self, document: &'v Value) -> Vec<&'v Value> {
        self.each_value(document)
    }

    /// Collects the values at this path, in the order of the document.
    pub(super) fn each_value<'v, C: Default + Extend<&'v Value>>(&self, document: &'v Value) -> C {
        let mut values = C::default();
        follow(&self.0, document, &mut values);
        values
    }

    /// Whether a document may have several values at this path.
    pub(super) fn has_elements(&self) -> bool {
        self.0.contains(&Step::Each)
    }

    /// The path of the field `name` below this path.
    pub(super) fn field(&self, name: &str) -> Self {
        self.with(Step::Field(name.to_owned()))
    }

    /// The path of the elements of the array at this path.
    pub(super) fn each(&self) -> Self {
        self.with(Step::Each)
    }

    /// The path of a document itself.
    pub(super) fn root() -> Self {
        Self(Vec::new())
    }

    /// This path appended to another one.
    pub(super) fn below(&self, other: &Self) -> Self {
        Self(other.0.iter().chain(&self.0).cloned().collect())
    }

    /// The path from the values at `other` to those at this path; `None` unless this path begins
    /// with `other`.
    pub(super) fn relative_to(&self, other: &Self) -> Option<Self> {
        self.0.strip_prefix(&other.0[..]).map(|rest| Self(rest.to_vec()))
    }

    fn with(&self, step: Step) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }
}

/// Adds the values at the end of `steps`. Each call goes one level down in the document, so the
/// depth of documents bounds the recursion.
fn follow<'v>(steps: &[Step], value: &'v Value, found: &mut impl Extend<&'v Value>) {
    let Some((step, rest)) = steps.split_first() else { return found.extend([value]) };
    match step {
        Step::Field(name) => {
            value.get(name).into_iter().for_each(|value| follow(rest, value, found));
        }
        Step::At(place) => {
            let element = value.as_array().and_then(|all| all.get(*place));
            element.into_iter().for_each(|value| follow(rest, value, found));
        }
        Step::Each => {
            let elements = value.as_array().into_iter().flatten();
            elements.for_each(|value| follow(rest, value, found));
        }
    }
}

fn is_plain(char: char) -> bool {
    char.is_alphanumeric() || char == '_' || char == '-'
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) => {
                    if n > 0 {
                        f.write_str(".")?;
                    }
                    match !name.is_empty() && name.chars().all(is_plain) {
                        true => f.write_str(name)?,
                        false => write!(f, "{}", Value::from(name.as_str()))?,
                    }
                }
                Step::Each => f.write_str("[]")?,
                Step::At(place) => write!(f, "[{place}]")?,
            }
        }
        Ok(())
    }
}

impl FromStr for JsonPath {
    type Err = Error;

    fn from_str(path: &str) -> Result<Self> {
        Parser { path, at: 0 }.parse()
    }
}

struct Parser<'p> {
    path: &'p str,
    at: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        self.path.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        self.at += if is_next { text.len() } else { 0 };
        is_next
    }

    fn refuse(&self, why: &'static str) -> Error {
        JsonError::BadPath { path: self.path.to_owned(), at: self.at, why }.into()
    }

    fn parse(mut self) -> Result<JsonPath> {
        let mut steps = Vec::new();
        loop {
            if self.take("[") {
                steps.push(self.bracket()?);
            } else if steps.is_empty() || self.take(".") {
                steps.push(Step::Field(self.name()?));
            } else {
                return Err(self.refuse("a name is followed by a dot, a bracket or the end"));
            }
            if self.rest().is_empty() {
                return Ok(JsonPath(steps));
            }
        }
    }

    /// Parses a step in brackets, after the opening bracket.
    fn bracket(&mut self) -> Result<Step> {
        let digits = self.rest().chars().take_while(char::is_ascii_digit).count();
        let number = self.rest().get(..digits).unwrap_or_default().to_owned();
        let place = match number.as_str() {
            "" => Step::Each,
            number => match number.parse() {
                Ok(place) => Step::At(place),
                Err(_) => return Err(self.refuse("the place in an array is too large")),
            },
        };
        self.at += digits;
        match self.take("]") {
            true => Ok(place),
            false => Err(self.refuse("brackets are empty, or contain the place of an element")),
        }
    }

    fn name(&mut self) -> Result<String> {
        if self.rest().starts_with('"') {
            let mut names = serde_json::Deserializer::from_str(self.rest()).into_iter::<String>();
            let Some(Ok(name)) = names.next() else {
                return Err(self.refuse("a quoted name is a JSON string"));
            };
            self.at += names.byte_offset();
            return Ok(name);
        }
        let name: String = self.rest().chars().take_while(|char| is_plain(*char)).collect();
        self.at += name.len();
        match name.is_empty() {
            true => Err(self.refuse(
                "a name has letters, digits, `_` and `-`; write any other as a JSON string",
            )),
            false => Ok(name),
        }
    }
}
