//! The labels of the edges that rows include.

use std::collections::BTreeSet;

use keyloom::{Error, Result};

/// The labels of the included edges; `None` means all labels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Labels(Option<BTreeSet<String>>);

impl Labels {
    pub(crate) fn of<L: Into<String>>(labels: impl IntoIterator<Item = L>) -> Self {
        Self(Some(labels.into_iter().map(Into::into).collect()))
    }

    /// Refuses an empty list, which would mean all labels in a search.
    pub(super) fn check(&self) -> Result<()> {
        match self.0.as_ref().is_some_and(BTreeSet::is_empty) {
            false => Ok(()),
            true => Err(Error::InvalidArgument {
                what: "labels",
                value: "[]".into(),
                why: "no edge has one of them; name a label, or leave out `labels` for all edges",
            }),
        }
    }

    pub(crate) fn has(&self, label: &str) -> bool {
        self.0.as_ref().is_none_or(|labels| labels.contains(label))
    }

    /// The labels in order; empty if all labels are included.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flatten().map(String::as_str)
    }

    /// The labels as text for the definition of blocks; empty if all labels are included. ASCII
    /// escapes, unlike those of `Debug`, do not depend on the version of Unicode.
    pub(crate) fn definition(&self) -> String {
        let names: Vec<_> =
            self.names().map(|label| format!("\"{}\"", label.escape_default())).collect();
        if names.is_empty() { String::new() } else { format!(", labels {}", names.join(" ")) }
    }
}
