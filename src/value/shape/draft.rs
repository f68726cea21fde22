//! The state of a trace: drafts of types, in which some parts may still be unknown.

use super::{FieldsBy, Leaf};

/// The index of a node among all nodes of a trace.
pub(super) type NodeId = usize;

/// A part of a type. `None` until a pass has visited the part.
pub(super) type Slot = Option<NodeId>;

/// A type that a trace has visited.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) name: String,
    /// `None` until the type has made its request.
    pub(super) draft: Option<Draft>,
    /// The number of answers that the type has refused, which is the number of the next answer.
    pub(super) refusals: usize,
    /// Whether the type refuses all answers.
    pub(super) refuses: bool,
    /// The number of open frames of the current pass that belong to this type.
    pub(super) active: usize,
    /// The last pass that has visited the type.
    pub(super) entered: usize,
    /// Whether the remaining parts of the type cannot be visited.
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
    /// Content that depends on the tag that is read before it.
    ByTag(Vec<(String, NodeId)>),
}

/// What is known about a name in the field list of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Unknown,
    Of(NodeId),
    /// Another name of the field at this index of the list.
    AliasOf(usize),
    /// The name is in the list, but the type does not accept it.
    Refused,
}

#[derive(Clone, Debug)]
pub(super) struct StructDraft {
    pub(super) names: &'static [&'static str],
    pub(super) by_name: Vec<Known>,
    pub(super) by_position: Vec<Slot>,
    /// The number of elements that the type reads by position.
    pub(super) count: Option<usize>,
    /// The indexes of names to give first. An alias of the same field came before such a name in an
    /// earlier pass.
    pub(super) first: Vec<usize>,
    /// Whether the type refuses to be read as a map, or as a sequence.
    pub(super) no_map: bool,
    pub(super) no_sequence: bool,
    pub(super) presence: Presence,
    /// Whether each field must be present, by the index of its name.
    pub(super) required: Vec<bool>,
    pub(super) is_strict: bool,
}

/// Whether it is known which fields must be present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// The next pass finds out whether unknown fields are accepted.
    Unknown,
    Probing,
    Known,
}

#[derive(Clone, Debug)]
pub(super) struct EnumDraft {
    pub(super) variants: Vec<VariantDraft>,
    /// The number of variants, which may be less than the number of names. It is found by answering
    /// with the highest numbers.
    pub(super) count: Count,
    pub(super) chosen: Option<usize>,
    /// Whether the type identifies variants by number only.
    pub(super) by_number: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// The type has at most this many variants. The next pass answers with the last of them, whose
    /// number is one less.
    AtMost(usize),
    Known(usize),
    /// The type does not identify variants by number.
    Unknown,
}

#[derive(Clone, Debug)]
pub(super) struct VariantDraft {
    pub(super) name: &'static str,
    pub(super) content: Content,
    /// Equal for two names of the same variant.
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

    /// Whether some fields have aliases. Only reading by name distinguishes aliases from fields.
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
    /// Whether the type itself has parts that no pass has visited yet.
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

    /// The depth of the smallest value, given the depths for other types; `None` if there is no
    /// value.
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

/// The number of steps from each node to the nearest incomplete node.
pub(super) fn distances(nodes: &[Node], by: FieldsBy) -> Vec<Option<u32>> {
    let mut distances: Vec<_> =
        nodes.iter().map(|node| node.is_incomplete(by).then_some(0)).collect();
    let types: Vec<_> = nodes.iter().map(Node::types).collect();
    loop {
        let mut has_changed = false;
        for (id, types) in types.iter().enumerate() {
            let below = types.iter().filter_map(|of| distances.get(*of).copied().flatten()).min();
            let Some(distance) = below.map(|below| below + 1) else { continue };
            if let Some(known) = distances.get_mut(id)
                && known.is_none_or(|known| distance < known)
            {
                *known = Some(distance);
                has_changed = true;
            }
        }
        if !has_changed {
            return distances;
        }
    }
}

/// The depths of the smallest values, by node.
pub(super) fn heights(nodes: &[Node]) -> Vec<Option<u32>> {
    let mut heights: Vec<Option<u32>> = vec![None; nodes.len()];
    loop {
        let mut has_changed = false;
        for (id, node) in nodes.iter().enumerate() {
            let height = node.height(|id| heights.get(id).copied().flatten());
            let known = heights.get_mut(id);
            if let Some(known) = known.filter(|known| known.is_none() && height.is_some()) {
                *known = height;
                has_changed = true;
            }
        }
        if !has_changed {
            return heights;
        }
    }
}
