//! The keys of an index.

use keyloom::key::pack_into;
use keyloom::{Error, KeyBuf, KeyRange, Result, Subspace, prefix_end, unpack};

/// The subspaces of an index, with short names, since they are in every key.
#[derive(Clone, Debug)]
pub(crate) struct Spaces {
    /// Counters of documents by field and term: the dictionary.
    pub(crate) terms: Subspace,
    /// Blocks of postings by field, term and last id.
    pub(crate) blocks: Subspace,
    /// Occurrences of the same.
    pub(crate) occurrences: Subspace,
    /// Counters of documents (0) and their lengths (1) by field.
    pub(crate) totals: Subspace,
    /// Summaries of blocks by field, term, number of layers below the greatest one, and last id.
    pub(crate) summaries: Subspace,
}

/// The greatest number of layers of summaries. Each has at most a tenth of those below it.
pub(crate) const MAX_LAYERS: u8 = 9;

/// The number of the subspace of ids and filters.
pub(crate) const RECORDS: u8 = 0;

impl Spaces {
    pub(crate) fn of(space: &Subspace) -> Self {
        Self {
            terms: space.child(&1),
            blocks: space.child(&2),
            occurrences: space.child(&3),
            totals: space.child(&4),
            summaries: space.child(&5),
        }
    }

    /// The counter of the documents that contain a term.
    pub(crate) fn term(&self, field: u32, term: &str) -> KeyBuf {
        self.terms.pack(&(field, term))
    }

    /// The counter of the documents that have a field.
    pub(crate) fn documents(&self, field: u32) -> KeyBuf {
        self.totals.pack(&(field, 0))
    }

    /// The counter of the lengths of a field in all documents.
    pub(crate) fn tokens(&self, field: u32) -> KeyBuf {
        self.totals.pack(&(field, 1))
    }

    pub(crate) fn list(&self, field: u32, term: &str) -> ListKeys {
        let key = (field, term);
        ListKeys {
            blocks: self.blocks.pack(&key),
            occurrences: self.occurrences.pack(&key),
            summaries: self.summaries.pack(&key),
        }
    }
}

/// The prefixes of the keys of a posting list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListKeys {
    pub(crate) blocks: KeyBuf,
    pub(crate) occurrences: KeyBuf,
    pub(crate) summaries: KeyBuf,
}

impl ListKeys {
    /// The prefix of the summaries of a layer, 1 or more. The highest layer comes first.
    pub(crate) fn layer(&self, layer: u8) -> KeyBuf {
        let mut key = self.summaries.clone();
        pack_into(&MAX_LAYERS.saturating_sub(layer), &mut key);
        key
    }

    /// The layer and the last id of a summary.
    pub(crate) fn summary_of(&self, key: &[u8]) -> Result<(u8, u32)> {
        let rest = key.get(self.summaries.len()..).unwrap_or_default();
        let (below, last) =
            unpack::<(u8, u32)>(rest).map_err(|error| Error::from(error).at(key))?;
        Ok((MAX_LAYERS.saturating_sub(below), last))
    }

    /// The key of the block that ends with an id.
    pub(crate) fn block(&self, last: u32) -> KeyBuf {
        with_id(&self.blocks, last)
    }

    /// The key of the occurrences of the block that ends with an id.
    pub(crate) fn of_occurrences(&self, last: u32) -> KeyBuf {
        with_id(&self.occurrences, last)
    }

    /// The last id of the block under a key.
    pub(crate) fn last_id(&self, key: &[u8]) -> Result<u32> {
        let id = key.get(self.blocks.len()..).unwrap_or_default();
        unpack(id).map_err(|error| Error::from(error).at(key))
    }

    /// The blocks that end with an id or after it.
    pub(crate) fn from(&self, id: u32) -> KeyRange<'static> {
        match prefix_end(&self.blocks) {
            Some(end) => KeyRange::half_open(&self.block(id), &end).into_owned(),
            None => KeyRange::starting_at(&self.block(id)).into_owned(),
        }
    }

    /// The blocks that end before an id.
    pub(crate) fn before(&self, id: u32) -> KeyRange<'static> {
        KeyRange::half_open(&self.blocks, &self.block(id)).into_owned()
    }
}

pub(crate) fn with_id(prefix: &[u8], id: u32) -> KeyBuf {
    let mut key = KeyBuf::from_slice(prefix);
    pack_into(&id, &mut key);
    key
}
