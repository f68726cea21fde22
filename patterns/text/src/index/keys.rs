//! The keys of an index.

use keyloom::key::pack_into;
use keyloom::key::{DecodeError, Unpacker};
use keyloom::{Error, KeyBuf, KeyRange, Pack, Result, Subspace, Unpack, pack, unpack};

/// The subspaces of an index or of one of its groups. Their names are short, since they are part of
/// every key.
#[derive(Clone, Debug)]
pub(crate) struct Spaces {
    /// Counters of documents by field and term: the dictionary.
    pub(crate) terms: Subspace,
    /// Blocks of postings by field, term and last id.
    pub(crate) blocks: Subspace,
    /// Occurrences by field, term and last id of the block.
    pub(crate) occurrences: Subspace,
    /// Counters by field: the number of its documents (0), and the sum of their lengths (1).
    pub(crate) totals: Subspace,
    /// Summaries of blocks by field, term, [`MAX_LAYERS`] minus the layer, and last id.
    pub(crate) summaries: Subspace,
}

/// The maximum number of layers of summaries. A summary has up to 16 units, so each layer usually
/// has far fewer units than the layer below.
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

    /// The subspaces of a group, for use with scopes that have no group of their own.
    pub(crate) fn of_group(&self, group: &[u8]) -> Self {
        let within = |space: &Subspace| Subspace::from_bytes(&[space.prefix(), group].concat());
        Self {
            terms: within(&self.terms),
            blocks: within(&self.blocks),
            occurrences: within(&self.occurrences),
            totals: within(&self.totals),
            summaries: within(&self.summaries),
        }
    }

    /// The counter of the documents that contain a term.
    pub(crate) fn term(&self, scope: &Scope, term: &str) -> KeyBuf {
        scope.key(&self.terms, term)
    }

    /// The counter of the documents that have a field.
    pub(crate) fn documents(&self, scope: &Scope) -> KeyBuf {
        scope.key(&self.totals, &0)
    }

    /// The counter of the total length of a field in all documents.
    pub(crate) fn tokens(&self, scope: &Scope) -> KeyBuf {
        scope.key(&self.totals, &1)
    }

    pub(crate) fn list(&self, scope: &Scope, term: &str) -> ListKeys {
        ListKeys {
            blocks: scope.key(&self.blocks, term),
            occurrences: scope.key(&self.occurrences, term),
            summaries: scope.key(&self.summaries, term),
        }
    }
}

/// One field of one group: the posting lists whose statistics belong together.
///
/// Scopes sort in the order of their keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Scope {
    /// The packed parts of the group, then the field.
    packed: KeyBuf,
    field: u32,
}

/// A field without a group.
impl From<u32> for Scope {
    fn from(field: u32) -> Self {
        Self { packed: pack(&field), field }
    }
}

impl Scope {
    /// A field of a packed group.
    pub(crate) fn new(group: &[u8], field: u32) -> Self {
        Self { packed: with_id(group, field), field }
    }

    pub(crate) fn field(&self) -> u32 {
        self.field
    }

    /// Whether this is a field of the packed group `group`.
    pub(crate) fn is_in(&self, group: &[u8]) -> bool {
        self.packed == with_id(group, self.field)
    }

    /// The place of a term in the dictionary: the end of the keys of [`Spaces::terms`].
    pub(crate) fn place(&self, term: &str) -> KeyBuf {
        self.key(&Subspace::root(), term)
    }

    fn key<P: Pack + ?Sized>(&self, space: &Subspace, rest: &P) -> KeyBuf {
        let mut key = KeyBuf::from_slice(space.prefix());
        key.extend_from_slice(&self.packed);
        pack_into(rest, &mut key);
        key
    }
}

/// Splits a key of one of the [`Spaces`] into its packed group and its last `many` elements.
///
/// # Errors
/// An error if the key is not a tuple, or if its last elements have other types.
pub(crate) fn split_group<'k, P: Unpack<'k>>(
    space: &Subspace,
    key: &'k [u8],
    many: usize,
) -> std::result::Result<(&'k [u8], P), DecodeError> {
    let rest = key.get(space.prefix().len()..).unwrap_or_default();
    let (mut input, mut starts) = (Unpacker::new(rest), Vec::new());
    while !input.is_at_end() {
        starts.push(input.offset());
        input.skip()?;
    }
    let start = starts.len().checked_sub(many).and_then(|first| starts.get(first));
    let (group, own) = rest.split_at_checked(start.copied().unwrap_or(0)).unwrap_or_default();
    Ok((group, unpack(own)?))
}

/// The prefixes of the keys of a posting list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListKeys {
    pub(crate) blocks: KeyBuf,
    pub(crate) occurrences: KeyBuf,
    pub(crate) summaries: KeyBuf,
}

impl ListKeys {
    /// The prefix of the summaries of a layer. `layer` is 1 or greater. In key order, the highest
    /// layer comes first.
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

    /// The blocks that end at an id or after it.
    pub(crate) fn from(&self, id: u32) -> KeyRange<'static> {
        after_id(&self.blocks, id)
    }

    /// Whether a key is that of a block of this list. The keys of a longer term, which continues
    /// with a NUL, have the same prefix.
    pub(crate) fn is_block(&self, key: &[u8]) -> bool {
        key.strip_prefix(&*self.blocks).is_some_and(|id| id.first() != Some(&0xFF))
    }

    /// The blocks that end before an id.
    pub(crate) fn before(&self, id: u32) -> KeyRange<'static> {
        KeyRange::half_open(&self.blocks, &self.block(id)).into_owned()
    }
}

/// The keys with a prefix that end with `id` or a greater id. The keys of a longer term, which
/// continues with a NUL, have the same prefix, followed by `FF`.
pub(crate) fn after_id(prefix: &[u8], id: u32) -> KeyRange<'static> {
    KeyRange::children(prefix).intersect(KeyRange::starting_at(&with_id(prefix, id))).into_owned()
}

pub(crate) fn with_id(prefix: &[u8], id: u32) -> KeyBuf {
    let mut key = KeyBuf::from_slice(prefix);
    pack_into(&id, &mut key);
    key
}
