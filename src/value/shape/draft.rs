//! What a trace knows so far: drafts of types, and which parts of them are not known yet.

use super::{FieldsBy, Leaf};

/// The place of a node among all nodes of a trace.
pub(super) type NodeId = usize;

/// A part whose type is known once a pass has met it.
pub(super) type Slot = Option<NodeId>;

/// A type that a trace has met.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) name: String,
    /// `None` until the type has made its request.
    pub(super) draft: Option<Draft>,
    /// How many answers the type has refused: the number of the next one.
    pub(super) refusals: usize,
    /// Whether it refuses all answers.
    pub(super) refuses: bool,
    /// How many of the frames of the current pass are of this type.
    pub(super) active: usize,
    /// The last pass that has met it.
    pub(super) entered: usize,
    /// Whether the rest of its parts cannot be met.
    pub(super) is_abandoned: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Draft {
    Leaf(Leaf),
    /// A request for any value.
    Any,
    Option(Slot),
    Sequence(Slot),
    Tuple(Vec<Slot>),
    Map(Slot, Slot),
    Struct(StructDraft),
    Enum(EnumDraft),
    /// Content that depends on the tag read before it.
    ByTag(Vec<(String, NodeId)>),
}

/// What is known of a name in the list of fields that a type gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Unknown,
    Of(NodeId),
    /// Another name of the field at this place of the list.
    AliasOf(usize),
    /// In the list, but the type does not take it.
    Refused,
}

#[derive(Clone, Debug)]
pub(super) struct StructDraft {
    pub(super) names: &'static [&'static str],
    pub(super) by_name: Vec<Known>,
    pub(super) by_position: Vec<Slot>,
    /// The number of elements that the type reads by position.
    pub(super) count: Option<usize>,
    /// Names that are given first, since another name of the same field came before them.
    pub(super) first: Vec<usize>,
    /// Whether the type refuses to be read as a map, or as a sequence.
    pub(super) no_map: bool,
    pub(super) no_sequence: bool,
    pub(super) presence: Presence,
    /// The fields that must be present, by the places of their names.
    pub(super) required: Vec<bool>,
    pub(super) is_strict: bool,
}

/// Whether it is known which fields must be present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// The next question is whether unknown fields are accepted.
    Unknown,
    Probing,
    Known,
}

#[derive(Clone, Debug)]
pub(super) struct EnumDraft {
    pub(super) variants: Vec<VariantDraft>,
    /// The number of variants, unlike the number of names; found by asking for the last ones.
    pub(super) count: Count,
    pub(super) chosen: Option<usize>,
    /// Whether the type identifies variants by number only.
    pub(super) by_number: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// The variant with this number is asked for next.
    AtMost(usize),
    Known(usize),
    /// The type does not identify variants by number.
    Unknown,
}

#[derive(Clone, Debug)]
pub(super) struct VariantDraft {
    pub(super) name: &'static str,
    pub(super) content: Content,
    /// A number that variants share if they are one under two names.
    pub(super) discriminant: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Unseen,
    Refused,
    Unit,
    Of(NodeId),
}

impl StructDraft {
    pub(super) fn new(names: &'static [&'static str]) -> Self {
        Self {
            names,
            by_name: vec![Known::Unknown; names.len()],
            by_position: vec![None; names.len()],
            count: None,
            first: Vec::new(),
            no_map: false,
            no_sequence: false,
            presence: Presence::Unknown,
            required: vec![false; names.len()],
            is_strict: false,
        }
    }

    pub(super) fn names_are_known(&self) -> bool {
        self.by_name.iter().all(|known| *known != Known::Unknown)
    }

    /// Whether the type of each position is known.
    fn positions_are_known(&self) -> bool {
        let known = |count| self.by_position.iter().take(count).all(Option::is_some);
        self.count.is_some_and(known)
    }

    /// Whether there are other names for fields, which only reading by name can tell apart.
    pub(super) fn has_aliases(&self) -> bool {
        self.count.is_some_and(|count| count < self.names.len())
    }

    pub(super) fn is_complete(&self, by: FieldsBy) -> bool {
        let by_name = !self.no_map && self.names_are_known();
        let by_position = !self.no_sequence && self.positions_are_known();
        match by {
            FieldsBy::Name if self.no_map => by_position || self.no_sequence,
            FieldsBy::Name => by_name && self.presence == Presence::Known,
            FieldsBy::Position if by_position && !self.has_aliases() => true,
            FieldsBy::Position => by_name || self.no_map && (by_position || self.no_sequence),
        }
    }

    pub(super) fn types(&self) -> impl Iterator<Item = Slot> {
        let by_name = self.by_name.iter().filter_map(|known| match known {
            Known::Of(node) => Some(Some(*node)),
            _ => None,
        });
        by_name.chain(self.by_position.iter().copied().filter(Option::is_some))
    }
}

impl EnumDraft {
    pub(super) fn new(names: &'static [&'static str]) -> Self {
        let variant = |name: &&'static str| VariantDraft {
            name,
            content: Content::Unseen,
            discriminant: None,
        };
        let count = match names.len() {
            0 => Count::Known(0),
            all => Count::AtMost(all),
        };
        let variants = names.iter().map(variant).collect();
        Self { variants, count, chosen: None, by_number: false }
    }

    /// Whether no variant has content.
    pub(super) fn is_plain(&self) -> bool {
        self.variants.iter().all(|one| !matches!(one.content, Content::Of(_)))
    }
}

impl Node {
    /// Whether the type itself has parts that no pass has met yet.
    pub(super) fn is_incomplete(&self, by: FieldsBy) -> bool {
        match &self.draft {
            _ if self.is_abandoned => false,
            None => !self.refuses,
            Some(Draft::Leaf(_) | Draft::Any | Draft::ByTag(_)) => false,
            Some(Draft::Option(of) | Draft::Sequence(of)) => of.is_none(),
            Some(Draft::Map(key, value)) => key.is_none() || value.is_none(),
            Some(Draft::Tuple(parts)) => parts.iter().any(Option::is_none),
            Some(Draft::Struct(draft)) => !draft.is_complete(by),
            Some(Draft::Enum(draft)) => {
                matches!(draft.count, Count::AtMost(_))
                    || draft.variants.iter().any(|one| one.content == Content::Unseen)
            }
        }
    }

    /// The known types of the parts.
    pub(super) fn types(&self) -> Vec<NodeId> {
        match &self.draft {
            None | Some(Draft::Leaf(_) | Draft::Any) => Vec::new(),
            Some(Draft::Option(of) | Draft::Sequence(of)) => of.iter().copied().collect(),
            Some(Draft::Map(key, value)) => key.iter().chain(value).copied().collect(),
            Some(Draft::Tuple(parts)) => parts.iter().flatten().copied().collect(),
            Some(Draft::Struct(draft)) => draft.types().flatten().collect(),
            Some(Draft::ByTag(contents)) => contents.iter().map(|(_, of)| *of).collect(),
            Some(Draft::Enum(draft)) => {
                let of = |one: &VariantDraft| match one.content {
                    Content::Of(node) => Some(node),
                    _ => None,
                };
                draft.variants.iter().filter_map(of).collect()
            }
        }
    }

    /// The depth of the smallest value, given those of other types: `None` if there is none.
    pub(super) fn height(&self, of: impl Fn(NodeId) -> Option<u32>) -> Option<u32> {
        if self.refuses {
            return None;
        }
        match &self.draft {
            None | Some(Draft::Leaf(_) | Draft::Any) => Some(0),
            Some(Draft::Option(_) | Draft::Sequence(_) | Draft::Map(..)) => Some(0),
            Some(Draft::Tuple(_) | Draft::Struct(_)) => self
                .types()
                .into_iter()
                .try_fold(0, |most: u32, part| Some(most.max(of(part)?.saturating_add(1)))),
            Some(Draft::ByTag(contents)) => contents.iter().filter_map(|one| of(one.1)).min(),
            Some(Draft::Enum(draft)) => {
                let one = |one: &VariantDraft| match one.content {
                    Content::Unseen | Content::Unit => Some(0),
                    Content::Refused => None,
                    Content::Of(node) => of(node).map(|height| height.saturating_add(1)),
                };
                draft.variants.iter().filter_map(one).min()
            }
        }
    }
}
