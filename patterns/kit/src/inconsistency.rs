//! The faults that a check reports.

use std::borrow::Cow;
use std::fmt;

use keyloom::key::display_named;
use keyloom::{Error, KeyBuf};

/// A fault that a check reports: a key, and the rule that the key breaks. An operation that fails
/// because of a fault returns the fault in an [`Error::Other`](keyloom::Error::Other).
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
    /// The description of the fault; it follows the key in the message.
    pub text: Cow<'static, str>,
    /// For a [contested](Rule::Contested) entry, the packed key of the record that also makes the
    /// entry but does not own it.
    pub record: Option<KeyBuf>,
}

/// A rule of derived data, of a tree or of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Rule {
    /// The entry should exist, but does not.
    Missing,
    /// The value differs from the value computed from the source data.
    Wrong,
    /// The entry exists, but no source data makes it.
    Dangling,
    /// The key or its value does not belong to this kind of data.
    Foreign,
    /// Two records make this entry, but only one of them can own it, as in a unique index. A repair
    /// cannot fix this. Change one of the two records.
    ///
    /// While the entry is missing, the first of the two records owns it, and the check also reports
    /// it as missing. (A check reads 1,000 records at a time. If the two records are in different
    /// chunks, the check reports the entry as missing twice. After a repair, the second report is
    /// `Contested`.)
    Contested,
    /// The value does not decode. Its derived data is unknown, so a repair leaves the value and the
    /// derived data unchanged. Delete or replace the record, or set the value of the node.
    Undecodable,
    /// The parent does not exist, or cannot have children.
    NoParent,
    /// The node is its own descendant.
    Cycle,
    /// A denormalized field is older than its source, and a propagation will refresh the field.
    Pending,
}

impl Rule {
    /// The description that follows the key in the message.
    const fn text(self) -> &'static str {
        match self {
            Self::Missing => "is missing",
            Self::Wrong => "has a wrong value",
            Self::Dangling => "dangles: nothing produces it",
            Self::Foreign => "is of another kind of data",
            Self::Contested => "belongs to another record, but this one also produces it",
            Self::Undecodable => "has a value that does not decode; delete or replace it",
            Self::NoParent => "has a parent that does not exist",
            Self::Cycle => "is below itself",
            Self::Pending => "is stale until its source is propagated",
        }
    }
}

impl Inconsistency {
    /// The fault that `key` breaks `rule`.
    pub fn new(key: KeyBuf, rule: Rule) -> Self {
        Self { key, rule, text: Cow::Borrowed(rule.text()), record: None }
    }

    /// The same fault with another text, which follows the key in the message.
    #[must_use]
    pub fn with_text(self, text: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.into(), ..self }
    }

    /// The fault of a key of another kind of data, or of a damaged key; `error` is the reason.
    pub fn foreign(key: KeyBuf, error: Error) -> Self {
        let error = if let Error::At { source, .. } = error { *source } else { error };
        Self::new(key, Rule::Foreign).with_text(format!("is wrong: {error}"))
    }

    /// The fault of an entry that `record` also makes but does not own.
    pub fn contested(entry: KeyBuf, record: KeyBuf) -> Self {
        let text =
            format!("belongs to another record, but {} also produces it", display_named(&record));
        Self { record: Some(record), ..Self::new(entry, Rule::Contested).with_text(text) }
    }
}

impl fmt::Display for Inconsistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the key {} {}", display_named(&self.key), self.text)
    }
}
