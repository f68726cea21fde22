//! What a check reports.

use std::borrow::Cow;
use std::fmt;

use keyloom::key::display;
use keyloom::{Error, KeyBuf};

/// One thing that is not as it should be: which key, and which rule it breaks. Where it stops an
/// operation it is the error, in an [`Error::Other`](keyloom::Error::Other).
///
/// ```
/// use keyloom::{KeyBuf, pack};
/// use keyloom_tables::{Inconsistency, Rule};
/// let fault = Inconsistency::new(pack(&("by_size", 4096, 1)), Rule::Missing);
/// assert_eq!(fault.to_string(), r#"the key ("by_size", 4096, 1) is missing"#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct Inconsistency {
    /// The key.
    pub key: KeyBuf,
    /// The rule.
    pub rule: Rule,
    /// The rule in words that follow the key.
    pub text: Cow<'static, str>,
    /// Of a [contested](Rule::Contested) entry: the packed key of the record that it does not
    /// belong to.
    pub record: Option<KeyBuf>,
}

/// A rule of derived data, of a tree or of an aggregate, which an [`Inconsistency`] breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Rule {
    /// What should be at the key is not there.
    Missing,
    /// What is at the key has another value than follows from the rest.
    Wrong,
    /// Nothing makes what is at the key.
    Dangling,
    /// The key or its value is not of this kind of data.
    Foreign,
    /// Two records make this entry, where there is room for one, as in a unique index. It belongs
    /// to one of them; change one of the records. A repair cannot fix this.
    ///
    /// While the entry is missing it belongs to the first of them, and is reported as missing as
    /// well. (A check that does not look at both together, being 1,000 records apart or more,
    /// reports it as missing twice; after a repair the second one is contested.)
    Contested,
    /// The value does not decode. What follows from it is not known, so a repair leaves it: delete
    /// or replace the record, or set the value of the node.
    Undecodable,
    /// The parent does not exist, or cannot have children.
    NoParent,
    /// The node lies below itself.
    Cycle,
    /// A copy is behind its source, and a
    /// [propagation](crate::denormalize::DenormalizedFields::propagate) will refresh it.
    Pending,
}

impl Rule {
    /// In words that follow the key.
    const fn text(self) -> &'static str {
        match self {
            Self::Missing => "is missing",
            Self::Wrong => "has a wrong value",
            Self::Dangling => "dangles: nothing makes it",
            Self::Foreign => "is of another kind of data",
            Self::Contested => "belongs to another record than this one, which makes it too",
            Self::Undecodable => "has a value that does not decode; delete or replace it",
            Self::NoParent => "has a parent that does not exist",
            Self::Cycle => "lies below itself",
            Self::Pending => "is behind its source until that is propagated",
        }
    }
}

impl Inconsistency {
    /// A broken rule at `key`.
    pub fn new(key: KeyBuf, rule: Rule) -> Self {
        Self { key, rule, text: Cow::Borrowed(rule.text()), record: None }
    }

    /// The same with other words, which follow the key.
    #[must_use]
    pub fn with_text(self, text: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.into(), ..self }
    }

    /// What is of another kind or damaged, and why.
    #[doc(hidden)]
    pub fn foreign(key: KeyBuf, error: Error) -> Self {
        let error = if let Error::At { source, .. } = error { *source } else { error };
        Self::new(key, Rule::Foreign).with_text(format!("is wrong: {error}"))
    }

    /// An entry that two records make, and that does not belong to `record`.
    pub(crate) fn contested(entry: KeyBuf, record: KeyBuf) -> Self {
        let text =
            format!("belongs to another record than {}, which makes it too", display(&record));
        Self { record: Some(record), ..Self::new(entry, Rule::Contested).with_text(text) }
    }
}

impl fmt::Display for Inconsistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the key {} {}", display(&self.key), self.text)
    }
}
