//! The owner of ids: what maps the ids of an expression to records. Ids of two owners stand for
//! different records.

use std::sync::Arc;

use keyloom::{Result, Subspace};

use crate::InvertedIndexError;

/// The owner of the ids of an expression: what maps these ids to records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IdOwner {
    /// No owner: the ids are from bitmaps of the program, not from an index.
    Unknown,
    /// The ids are keys of records.
    Keys,
    /// The index in this subspace assigns the ids. It reassigns the id of a deleted record.
    Index(Arc<Subspace>),
    /// The ids have two different owners, with these names. The same id stands for different
    /// records.
    Mixed(Arc<[String; 2]>),
}

impl IdOwner {
    /// The owner of the ids of an expression that combines ids of both owners.
    pub(super) fn joined(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Mixed(_), _) | (_, Self::Unknown) => self.clone(),
            (Self::Unknown, _) | (_, Self::Mixed(_)) => other.clone(),
            (one, other) if one == other => one.clone(),
            (one, other) => Self::Mixed(Arc::new([one.named(), other.named()])),
        }
    }

    fn named(&self) -> String {
        match self {
            Self::Index(space) => format!("ids that the index {} assigns", space.named()),
            Self::Keys | Self::Unknown | Self::Mixed(_) => "keys of records as ids".into(),
        }
    }

    /// Refuses an expression that combines ids of two owners.
    pub(super) fn check(&self) -> Result<()> {
        match self {
            Self::Unknown | Self::Keys | Self::Index(_) => Ok(()),
            Self::Mixed(names) => {
                let [one, other] = (**names).clone();
                Err(InvertedIndexError::MixedIds { one, other }.into())
            }
        }
    }
}
