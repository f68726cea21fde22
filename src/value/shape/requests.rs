//! The deserializer of a trace: it records each request, and answers it.

use std::any::TypeId;
use std::fmt::{self, Display};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::de::value::{BorrowedStrDeserializer, U32Deserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};

use super::draft::{Content, Count, Draft, EnumDraft, Known, NodeId, Presence, StructDraft};
use super::probes::{ANY, BYTES, CHARS, FLOATS, SIGNED, STRINGS, UNSIGNED};
use super::trace::{Tracer, bare, untraceable};
use super::{FieldsBy, Leaf, MOST_TUPLE, type_name};

/// An error of a visitor.
#[derive(Debug)]
pub(super) enum Refused {
    Message,
    /// A field is missing, occurs twice, or is not known.
    Missing(&'static str),
    Duplicate(&'static str),
    Unknown,
}

impl Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the type refuses this value")
    }
}

impl std::error::Error for Refused {}

impl serde::de::Error for Refused {
    fn custom<T: Display>(_: T) -> Self {
        Self::Message
    }

    fn missing_field(field: &'static str) -> Self {
        Self::Missing(field)
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::Duplicate(field)
    }

    fn unknown_field(_: &str, _: &'static [&'static str]) -> Self {
        Self::Unknown
    }
}

type Result<T, E = Refused> = std::result::Result<T, E>;

/// The most elements of an array, each of which a pass visits.
const MOST_ARRAY: usize = 1 << 20;

/// The number of answers to a request for a primitive.
pub(super) fn answers(leaf: Leaf) -> usize {
    match leaf {
        Leaf::Unit => 1,
        Leaf::Bool => 2,
        Leaf::I8 | Leaf::I16 | Leaf::I32 | Leaf::I64 | Leaf::I128 => SIGNED.len(),
        Leaf::U8 | Leaf::U16 | Leaf::U32 | Leaf::U64 | Leaf::U128 => UNSIGNED.len(),
        Leaf::F32 | Leaf::F64 => FLOATS.len(),
        Leaf::Char => CHARS.len(),
        Leaf::String => STRINGS.len(),
        Leaf::Bytes => BYTES.len(),
    }
}

/// The deserializer of one type.
#[derive(Clone, Copy)]
pub(super) struct At<'t> {
    tracer: &'t Tracer,
    node: NodeId,
}

impl<'t> At<'t> {
    pub(super) fn new(tracer: &'t Tracer, node: NodeId) -> Self {
        Self { tracer, node }
    }

    /// Records the request of the type, which must be the same in each pass.
    fn requests(self, new: Draft, is_same: impl Fn(&Draft) -> bool) -> Result<()> {
        let parts = match &new {
            Draft::Struct(draft) => draft.names.len(),
            Draft::Enum(draft) => draft.variants.len(),
            Draft::Tuple(parts) => parts.len().min(MOST_TUPLE),
            _ => 0,
        };
        let Self { tracer, node } = self;
        let recorded = tracer.with(|state| match state.draft_of(node) {
            Some(draft) if is_same(draft) => Ok(()),
            Some(_) => {
                let name = state.node(node).map(|node| node.name.clone()).unwrap_or_default();
                Err(untraceable(
                    &name,
                    "its shape depends on values; give it a name and a version in a codec of your own",
                ))
            }
            None => {
                state.count_parts(parts)?;
                state.news();
                if let Some(node) = state.node(node) {
                    node.draft = Some(new);
                }
                Ok(())
            }
        });
        tracer.or_fail(recorded)
    }

    /// Records a request for a primitive, and returns the number of the answer.
    fn leaf(self, leaf: Leaf) -> Result<usize> {
        self.requests(Draft::Leaf(leaf), |draft| matches!(draft, Draft::Leaf(is) if *is == leaf))?;
        Ok(self.tracer.answer(self.node, answers(leaf)))
    }

    fn of<T>(self, result: Result<T>) -> Result<T> {
        self.tracer.of(self.node, result)
    }

    /// The type inside this one, which has no seed of its own.
    fn inner(self, name: &str) -> Result<NodeId> {
        let added = self.tracer.with(|state| state.add_inner(name.into()));
        self.tracer.or_fail(added)
    }

    fn tuple<'de, V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value> {
        if len > MOST_ARRAY {
            let counted = self.tracer.with(|state| state.count_parts(len));
            self.tracer.or_fail(counted)?;
        }
        let same = |draft: &Draft| matches!(draft, Draft::Tuple(parts) if parts.len() == len);
        self.requests(Draft::Tuple(vec![None; len]), same)?;
        self.tracer.with(|state| state.vary(self.node));
        self.of(visitor.visit_seq(Elements { at: self, next: 0, len }))
    }

    fn fields<'de, V: Visitor<'de>>(
        self,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let same = |draft: &Draft| matches!(draft, Draft::Struct(is) if is.names == names);
        self.requests(Draft::Struct(StructDraft::new(names)), same)?;
        self.tracer.with(|state| state.vary(self.node));
        let value_type = typeid::of::<V::Value>();
        match self.plan() {
            Plan::ByPosition => {
                let mut count = 0;
                let access = Positions { at: self, names, next: &mut count, tag: None, value_type };
                let result = visitor.visit_seq(access);
                self.conclude_by_position(result.is_ok(), count);
                self.of(result)
            }
            Plan::ByName { offered, is_probe, unknown } => {
                let mut next = 0;
                let access = Names {
                    at: self,
                    names,
                    offered: &offered,
                    next: &mut next,
                    tag: None,
                    value_type,
                    unknown,
                };
                let result = visitor.visit_map(access);
                let last = next.checked_sub(1).and_then(|at| offered.get(at)).copied();
                let given = Given { names, last, is_probe, unknown };
                self.conclude_by_name(result.as_ref().err(), &given);
                self.of(result)
            }
        }
    }

    fn plan(self) -> Plan {
        let by = self.tracer.how.fields_by;
        self.tracer.with(|state| {
            let is_outermost = state.is_outermost(self.node);
            let Some(Draft::Struct(draft)) = state.draft_of(self.node) else {
                return Plan::ByPosition;
            };
            let types: Vec<_> = draft.by_name.clone();
            let positions: Vec<_> = draft.by_position.iter().flatten().copied().collect();
            let (no_map, no_sequence, has_aliases) =
                (draft.no_map, draft.no_sequence, draft.has_aliases());
            let (names_are_known, presence) = (draft.names_are_known(), draft.presence);
            let (required, first) = (draft.required.clone(), draft.first.clone());
            let is_blocked = positions.iter().any(|part| state.height(*part).is_none());
            let by_position = match by {
                _ if no_map => true,
                _ if no_sequence => false,
                FieldsBy::Name => false,
                FieldsBy::Position => !is_blocked && (!has_aliases || names_are_known),
            };
            if by_position {
                return Plan::ByPosition;
            }
            if by == FieldsBy::Name
                && names_are_known
                && presence != Presence::Known
                && is_outermost
            {
                let offered = (0..types.len()).filter(|at| required.get(*at) == Some(&true));
                let unknown = presence == Presence::Unknown;
                return Plan::ByName { offered: offered.collect(), is_probe: true, unknown };
            }
            let rank = |known: &Known| match known {
                Known::Unknown => Some(0),
                Known::Of(of) if state.is_open(*of) && !state.is_active(*of) => Some(1),
                Known::Of(of) if state.height(*of).is_some() => Some(2),
                _ => None,
            };
            let mut offered: Vec<_> = types.iter().enumerate().collect();
            offered.retain(|(_, known)| rank(known).is_some());
            let first = |at: &usize| !first.contains(at);
            offered.sort_by_key(|(at, _)| first(at));
            // A part that refuses all values ends the pass, so what is not known comes before it.
            // Otherwise the order stays: a tag is read before its content.
            let refuses =
                |known: &Known| matches!(known, Known::Of(of) if state.height(*of).is_none());
            if types.iter().any(refuses) {
                offered.sort_by_key(|(at, known)| (first(at), rank(known)));
            }
            let offered = offered.into_iter().map(|(at, _)| at).collect();
            Plan::ByName { offered, is_probe: false, unknown: false }
        })
    }

    fn conclude_by_position(self, is_ok: bool, count: usize) {
        let is_attributed = self.tracer.is_attributed();
        self.tracer.with(|state| {
            let Some(Draft::Struct(draft)) = state.draft(self.node) else { return };
            if is_ok && draft.count.is_none() {
                draft.count = Some(count);
                state.news();
            } else if !is_ok && !is_attributed && count == 0 && !draft.names.is_empty() {
                draft.no_sequence = true;
                state.explain(true);
            }
        });
    }

    /// Draws the conclusions from a struct that was read by name.
    fn conclude_by_name(self, error: Option<&Refused>, given: &Given) {
        if error.is_some() && self.tracer.is_attributed() {
            return;
        }
        self.tracer.with(|state| {
            let Some(Draft::Struct(draft)) = state.draft(self.node) else { return };
            let of = |name: &str| given.names.iter().position(|other| *other == name);
            let known = draft.by_name.get_mut(given.last.unwrap_or(usize::MAX));
            match error {
                None if given.is_probe => draft.presence = Presence::Known,
                None => return,
                Some(Refused::Unknown) if given.unknown => {
                    (draft.is_strict, draft.presence) = (true, Presence::Probing);
                }
                Some(Refused::Unknown) => match known {
                    Some(known) => *known = Known::Refused,
                    None => return,
                },
                Some(Refused::Duplicate(name)) => match (known, of(name)) {
                    // It comes after one of its other names, and the next pass gives it first.
                    (Some(_), Some(first)) if given.last == Some(first) => {
                        let is_new = !draft.first.contains(&first);
                        draft.first.extend(is_new.then_some(first));
                        for known in draft.by_name.iter_mut().filter(|_| is_new) {
                            if matches!(known, Known::Of(_)) {
                                *known = Known::Unknown;
                            }
                        }
                        return state.explain(is_new);
                    }
                    (Some(known), Some(first)) => *known = Known::AliasOf(first),
                    _ => return,
                },
                Some(Refused::Missing(name)) if given.is_probe => {
                    draft.presence = Presence::Probing;
                    match of(name).and_then(|at| draft.required.get_mut(at)) {
                        Some(required) if !*required => *required = true,
                        _ => draft.presume_required(),
                    }
                }
                // It was left out since nothing of its type can be given.
                Some(Refused::Missing(_)) if draft.names_are_known() => {
                    let node = state.node(self.node).filter(|node| !node.refuses);
                    let has_news = node.map(|node| node.refuses = true).is_some();
                    return state.explain(has_news);
                }
                Some(_) if given.is_probe => draft.presume_required(),
                Some(_) if given.last.is_none() && !draft.names.is_empty() => draft.no_map = true,
                Some(_) => return,
            }
            state.explain(true);
        });
    }
}

impl StructDraft {
    /// Without knowing better, a field must be present.
    fn presume_required(&mut self) {
        self.presence = Presence::Known;
        self.required.iter_mut().for_each(|required| *required = true);
    }
}

/// How a struct is read in this pass.
enum Plan {
    ByPosition,
    ByName {
        /// The places of the names, in this order.
        offered: Vec<usize>,
        /// Whether only the fields are given that must be present, to find out which those are.
        is_probe: bool,
        /// Whether a field that the type does not know is given first.
        unknown: bool,
    },
}

/// What a struct was given by name.
struct Given {
    names: &'static [&'static str],
    /// The place of the last name.
    last: Option<usize>,
    is_probe: bool,
    unknown: bool,
}

macro_rules! leaves {
    ($($method:ident $leaf:ident $visit:ident $answers:ident as $type:ty;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            let answer = self.leaf(Leaf::$leaf)?;
            // An integer that does not fit is cut off, which is as good an answer.
            let value = $answers.get(answer).copied().unwrap_or_default();
            self.of(visitor.$visit(value as $type))
        }
    )*};
}

impl<'de> Deserializer<'de> for At<'_> {
    type Error = Refused;

    leaves! {
        deserialize_i8 I8 visit_i8 SIGNED as i8;
        deserialize_i16 I16 visit_i16 SIGNED as i16;
        deserialize_i32 I32 visit_i32 SIGNED as i32;
        deserialize_i64 I64 visit_i64 SIGNED as i64;
        deserialize_i128 I128 visit_i128 SIGNED as i128;
        deserialize_u8 U8 visit_u8 UNSIGNED as u8;
        deserialize_u16 U16 visit_u16 UNSIGNED as u16;
        deserialize_u32 U32 visit_u32 UNSIGNED as u32;
        deserialize_u64 U64 visit_u64 UNSIGNED as u64;
        deserialize_u128 U128 visit_u128 UNSIGNED as u128;
        deserialize_f32 F32 visit_f32 FLOATS as f32;
        deserialize_f64 F64 visit_f64 FLOATS as f64;
        deserialize_char Char visit_char CHARS as char;
        deserialize_str String visit_borrowed_str STRINGS as &'static str;
        deserialize_string String visit_borrowed_str STRINGS as &'static str;
        deserialize_bytes Bytes visit_borrowed_bytes BYTES as &'static [u8];
        deserialize_byte_buf Bytes visit_borrowed_bytes BYTES as &'static [u8];
    }

    fn is_human_readable(&self) -> bool {
        self.tracer.how.is_human_readable
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let answer = self.leaf(Leaf::Bool)?;
        self.of(visitor.visit_bool(answer == 1))
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.leaf(Leaf::Unit)?;
        self.of(visitor.visit_unit())
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.requests(Draft::Any, |draft| matches!(draft, Draft::Any))?;
        let result = match self.tracer.answer(self.node, ANY) {
            0 => visitor.visit_unit(),
            1 => visitor.visit_borrowed_str("a"),
            2 => visitor.visit_u64(1),
            3 => visitor.visit_bool(false),
            4 => visitor.visit_f64(0.5),
            _ => {
                visitor.visit_seq(serde::de::value::SeqDeserializer::new(std::iter::empty::<u8>()))
            }
        };
        self.of(result)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_any(visitor)
    }

    /// Only a map whose keys are the fields of a struct, as with `flatten`, requests it here.
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.requests(Draft::Option(None), |draft| matches!(draft, Draft::Option(_)))?;
        let Self { tracer, node } = self;
        let part = tracer.with(|state| match state.draft(node) {
            Some(Draft::Option(part)) => *part,
            _ => None,
        });
        if !tracer.with(|state| state.wants(node, part)) {
            return self.of(visitor.visit_none());
        }
        let part = match part {
            Some(part) => part,
            None => {
                let name = type_name::<V::Value>();
                let inner = name.strip_prefix("Option<").and_then(|name| name.strip_suffix('>'));
                let part = self.inner(bare(inner.unwrap_or(&name)))?;
                tracer.with(|state| {
                    if let Some(Draft::Option(slot)) = state.draft(node) {
                        *slot = Some(part);
                    }
                });
                part
            }
        };
        tracer.enter(part).inspect_err(|_| tracer.leave(part, true))?;
        let result = visitor.visit_some(At::new(tracer, part));
        tracer.leave(part, result.is_err());
        self.of(result)
    }

    /// No codec writes anything for it, so the type inside stands at the same place.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        self.of(visitor.visit_newtype_struct(self))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.requests(Draft::Sequence(None), |draft| matches!(draft, Draft::Sequence(_)))?;
        let Self { tracer, node } = self;
        let len = tracer.with(|state| {
            let part = match state.draft(node) {
                Some(Draft::Sequence(part)) => *part,
                _ => None,
            };
            usize::from(state.wants(node, part))
        });
        self.of(visitor.visit_seq(Elements { at: self, next: 0, len }))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value> {
        self.tuple(len, visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.tuple(len, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.requests(Draft::Map(None, None), |draft| matches!(draft, Draft::Map(..)))?;
        let Self { tracer, node } = self;
        let len = tracer.with(|state| {
            let (key, value) = match state.draft(node) {
                Some(Draft::Map(key, value)) => (*key, *value),
                _ => (None, None),
            };
            // The key is asked for first, and must be one that can be given.
            let has_key = key.is_none_or(|key| state.height(key).is_some() || state.is_open(key));
            usize::from(has_key && (state.wants(node, key) || state.wants(node, value)))
        });
        self.of(visitor.visit_map(Entry { at: self, left: len }))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.fields(fields, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let same = |draft: &Draft| matches!(draft, Draft::Enum(is) if is.variants.iter().map(|one| one.name).eq(variants.iter().copied()));
        self.requests(Draft::Enum(EnumDraft::new(variants)), same)?;
        let chosen = self.tracer.with(|state| state.choose(self.node));
        let result = visitor.visit_enum(Choice { at: self, chosen });
        if result.is_err() && !self.tracer.is_attributed() {
            self.tracer.with(|state| {
                if state.refuse_variant(self.node) {
                    state.explain(true);
                }
            });
        }
        self.of(result)
    }
}

/// The elements of a sequence or of a tuple.
struct Elements<'t> {
    at: At<'t>,
    next: usize,
    len: usize,
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = Refused;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        if self.next >= self.len {
            return Ok(None);
        }
        let tracer = self.at.tracer;
        let part = tracer.node_of_seed::<S>(None)?;
        let known = tracer.with(|state| {
            let slot = match state.draft(self.at.node) {
                Some(Draft::Sequence(slot)) => Some(slot),
                Some(Draft::Tuple(parts)) => parts.get_mut(self.next),
                _ => None,
            };
            slot.is_none_or(|slot| *slot.get_or_insert(part) == part)
        });
        self.at.refuse_other_part(known)?;
        self.next += 1;
        tracer.part(part, seed).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.len - self.next)
    }
}

impl At<'_> {
    /// A part has the same type in each pass.
    fn refuse_other_part(self, is_same: bool) -> Result<()> {
        if is_same {
            return Ok(());
        }
        let name = self.tracer.with(|state| state.node(self.node).map(|node| node.name.clone()));
        self.tracer.or_fail(Err(untraceable(
            &name.unwrap_or_default(),
            "the types of its parts depend on values; give it a name and a version in a codec of your own",
        )))
    }

    /// The type of a part of a struct. The content of an adjacently tagged enum is read as the enum
    /// itself, and depends on the `tag` that was read before it.
    fn part_of_struct<'de, S: DeserializeSeed<'de>>(
        self,
        value_type: TypeId,
        tag: Option<&str>,
    ) -> Result<(NodeId, NodeId)> {
        let Some(tag) = tag.filter(|_| typeid::of::<S::Value>() == value_type) else {
            let part = self.tracer.node_of_seed::<S>(None)?;
            return Ok((part, part));
        };
        let all = self.tracer.node_of_seed::<S>(Some(String::new()))?;
        let part = self.tracer.node_of_seed::<S>(Some(format!("={tag}")))?;
        self.tracer.with(|state| {
            if let Some(node) = state.node(part) {
                node.name = tag.into();
            }
            let Some(node) = state.node(all) else { return };
            let draft = node.draft.get_or_insert(Draft::ByTag(Vec::new()));
            if let Draft::ByTag(contents) = draft
                && !contents.iter().any(|(known, _)| known == tag)
            {
                contents.push((tag.into(), part));
                state.news();
            }
        });
        Ok((all, part))
    }

    /// The variant that was chosen for a part, if it is an enum without content.
    fn tag(self, part: NodeId) -> Option<String> {
        self.tracer.with(|state| match state.draft(part) {
            Some(Draft::Enum(draft)) if draft.is_plain() => {
                draft.chosen.and_then(|at| draft.variants.get(at)).map(|one| one.name.into())
            }
            _ => None,
        })
    }
}

/// The fields of a struct by position.
struct Positions<'a, 't> {
    at: At<'t>,
    names: &'static [&'static str],
    next: &'a mut usize,
    tag: Option<String>,
    value_type: TypeId,
}

impl<'de> SeqAccess<'de> for Positions<'_, '_> {
    type Error = Refused;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        if *self.next >= self.names.len() {
            return Ok(None);
        }
        let tracer = self.at.tracer;
        let (all, part) = self.at.part_of_struct::<S>(self.value_type, self.tag.as_deref())?;
        let known = tracer.with(|state| match state.draft(self.at.node) {
            Some(Draft::Struct(draft)) => draft
                .by_position
                .get_mut(*self.next)
                .is_none_or(|slot| *slot.get_or_insert(all) == all),
            _ => true,
        });
        self.at.refuse_other_part(known)?;
        *self.next += 1;
        let value = tracer.part(part, seed)?;
        self.tag = self.at.tag(part);
        Ok(Some(value))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.names.len() - *self.next)
    }
}

/// The fields of a struct by name.
struct Names<'a, 't> {
    at: At<'t>,
    names: &'static [&'static str],
    offered: &'a [usize],
    next: &'a mut usize,
    tag: Option<String>,
    value_type: TypeId,
    unknown: bool,
}

/// No type has a field of this name.
const UNKNOWN: &str = "\u{1}an unknown field";

impl<'de> MapAccess<'de> for Names<'_, '_> {
    type Error = Refused;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        if self.unknown {
            return seed.deserialize(BorrowedStrDeserializer::new(UNKNOWN)).map(Some);
        }
        let Some(name) = self.offered.get(*self.next).and_then(|at| self.names.get(*at)) else {
            return Ok(None);
        };
        *self.next += 1;
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        if std::mem::take(&mut self.unknown) {
            return seed.deserialize(serde::de::value::UnitDeserializer::new());
        }
        let tracer = self.at.tracer;
        let (all, part) = self.at.part_of_struct::<S>(self.value_type, self.tag.as_deref())?;
        let place = self.next.checked_sub(1).and_then(|next| self.offered.get(next)).copied();
        let known = tracer.with(|state| {
            let Some(Draft::Struct(draft)) = state.draft(self.at.node) else { return true };
            match draft.by_name.get_mut(place.unwrap_or(usize::MAX)) {
                Some(known @ Known::Unknown) => {
                    *known = Known::Of(all);
                    state.news();
                    true
                }
                Some(known) => *known == Known::Of(all),
                None => true,
            }
        });
        self.at.refuse_other_part(known)?;
        let value = tracer.part(part, seed)?;
        self.tag = self.at.tag(part);
        Ok(value)
    }
}

/// The entry of a map.
struct Entry<'t> {
    at: At<'t>,
    left: usize,
}

impl Entry<'_> {
    fn part<'de, S: DeserializeSeed<'de>>(&self, seed: S, is_key: bool) -> Result<S::Value> {
        let tracer = self.at.tracer;
        let part = tracer.node_of_seed::<S>(None)?;
        let known = tracer.with(|state| {
            let Some(Draft::Map(key, value)) = state.draft(self.at.node) else { return true };
            let is_same = *(if is_key { &mut *key } else { value }).get_or_insert(part) == part;
            // With `flatten`, the key is the name of a field, and the value has its type.
            let key = *key;
            is_same || key.is_some_and(|key| matches!(state.draft_of(key), Some(Draft::Any)))
        });
        self.at.refuse_other_part(known)?;
        tracer.part(part, seed)
    }
}

impl<'de> MapAccess<'de> for Entry<'_> {
    type Error = Refused;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.part(seed, true).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        self.part(seed, false)
    }
}

/// The variant of an enum.
struct Choice<'t> {
    at: At<'t>,
    chosen: Chosen,
}

/// A variant to answer with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chosen {
    name: Option<&'static str>,
    number: u32,
    /// Whether it serves to count the variants.
    counts: bool,
}

impl super::trace::State {
    /// Chooses a variant of the enum: one that is not known, or one with something unknown below,
    /// or the smallest.
    pub(super) fn choose(&mut self, id: NodeId) -> Chosen {
        let (pass, in_vain) = (self.pass, self.in_vain);
        let is_outermost = self.is_outermost(id);
        let refusals = self.node(id).map_or(0, |node| node.refusals);
        let Some(Draft::Enum(draft)) = self.draft(id) else {
            return Chosen { name: None, number: 0, counts: false };
        };
        if let Count::AtMost(count) = draft.count {
            let number = u32::try_from(count.saturating_sub(1)).unwrap_or(0);
            draft.chosen = None;
            return Chosen { name: None, number, counts: true };
        }
        let is_plain = draft.is_plain();
        let contents: Vec<_> = draft.variants.iter().map(|one| one.content).collect();
        let unseen = contents.iter().position(|content| *content == Content::Unseen);
        let usable: Vec<_> = (0..contents.len())
            .filter(|at| match contents.get(*at) {
                Some(Content::Unit) => true,
                Some(Content::Of(of)) => self.height(*of).is_some(),
                _ => false,
            })
            .collect();
        // The nearest type that is not complete: a shortest way meets no type twice.
        let distance = |at: &usize| match contents.get(*at) {
            Some(Content::Of(of)) => self.distance(*of).filter(|_| !self.is_active(*of)),
            _ => None,
        };
        let open = (0..contents.len()).filter(|at| distance(at).is_some()).min_by_key(distance);
        let smallest = usable.iter().copied().min_by_key(|at| match contents.get(*at) {
            Some(Content::Of(of)) => self.height(*of).map(|height| height + 1),
            _ => Some(0),
        });
        let turn = |n: usize| usable.get(n % usable.len().max(1)).copied();
        let chosen = unseen
            .or(open.filter(|_| is_outermost && in_vain % 4 < 3))
            .or_else(|| match () {
                () if is_plain || in_vain > 0 && is_outermost => turn(pass),
                () if refusals > 0 && is_outermost => turn(refusals),
                () => smallest,
            })
            .unwrap_or(0);
        let Some(Draft::Enum(draft)) = self.draft(id) else {
            return Chosen { name: None, number: 0, counts: false };
        };
        draft.chosen = Some(chosen);
        let name = draft.variants.get(chosen).map(|one| one.name).filter(|_| !draft.by_number);
        Chosen { name, number: u32::try_from(chosen).unwrap_or(0), counts: false }
    }
}

impl<'de, 't> EnumAccess<'de> for Choice<'t> {
    type Error = Refused;
    type Variant = VariantContent<'t>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant)> {
        let Self { at, chosen } = self;
        let identified = match chosen.name {
            Some(name) => seed.deserialize(BorrowedStrDeserializer::<Refused>::new(name)),
            None => seed.deserialize(U32Deserializer::<Refused>::new(chosen.number)),
        };
        let is_ok = identified.is_ok();
        let discriminant = identified.as_ref().ok().map(|value| {
            let mut hasher = DefaultHasher::new();
            std::mem::discriminant(value).hash(&mut hasher);
            hasher.finish()
        });
        at.tracer.with(|state| {
            let Some(Draft::Enum(draft)) = state.draft(at.node) else { return };
            if chosen.counts {
                draft.count = match (is_ok, chosen.number) {
                    (true, number) => Count::Known(number as usize + 1),
                    (false, 0) => Count::Unknown,
                    (false, number) => Count::AtMost(number as usize),
                };
                return state.explain(true);
            }
            let by_number = draft.by_number;
            let Some(one) = draft.chosen.and_then(|at| draft.variants.get_mut(at)) else { return };
            match discriminant {
                Some(discriminant) => one.discriminant = Some(discriminant),
                // It knows its variants by number, if not by name.
                None if !by_number
                    && matches!(draft.count, Count::Known(_))
                    && chosen.number == 0 =>
                {
                    draft.by_number = true;
                    state.explain(true);
                }
                None => {
                    one.content = Content::Refused;
                    state.explain(true);
                }
            }
        });
        if chosen.counts {
            return Err(Refused::custom("the variants are counted"));
        }
        Ok((identified?, VariantContent { at }))
    }
}

/// The content of the chosen variant.
struct VariantContent<'t> {
    at: At<'t>,
}

impl<'t> VariantContent<'t> {
    /// Records the content. `part` makes the node when it is not known.
    fn content(&self, part: impl FnOnce(At<'t>, &'static str) -> Result<NodeId>) -> Result<NodeId> {
        let tracer = self.at.tracer;
        let (known, name) = tracer.with(|state| match state.draft(self.at.node) {
            Some(Draft::Enum(draft)) => {
                let one = draft.chosen.and_then(|at| draft.variants.get(at));
                one.map_or((Content::Unseen, ""), |one| (one.content, one.name))
            }
            _ => (Content::Unseen, ""),
        });
        match known {
            Content::Of(of) => Ok(of),
            _ => {
                let of = part(self.at, name)?;
                self.set(Content::Of(of));
                Ok(of)
            }
        }
    }

    fn set(&self, content: Content) {
        self.at.tracer.with(|state| {
            let Some(Draft::Enum(draft)) = state.draft(self.at.node) else { return };
            let chosen = draft.chosen.and_then(|at| draft.variants.get_mut(at));
            if let Some(one) = chosen.filter(|one| one.content != content) {
                one.content = content;
                state.news();
            }
        });
    }

    fn inside<'de, V: Visitor<'de>>(
        self,
        of: NodeId,
        visitor: V,
        read: impl FnOnce(At<'t>, V) -> Result<V::Value>,
    ) -> Result<V::Value> {
        let tracer = self.at.tracer;
        tracer.enter(of).inspect_err(|_| tracer.leave(of, true))?;
        let result = read(At::new(tracer, of), visitor);
        tracer.leave(of, result.is_err());
        result
    }
}

impl<'de> VariantAccess<'de> for VariantContent<'_> {
    type Error = Refused;

    fn unit_variant(self) -> Result<()> {
        self.set(Content::Unit);
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value> {
        let of = self.content(|at, _| at.tracer.node_of_seed::<S>(None))?;
        self.at.tracer.part(of, seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value> {
        let of = self.content(|at, name| at.inner(name))?;
        self.inside(of, visitor, |at, visitor| at.tuple(len, visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let of = self.content(|at, name| at.inner(name))?;
        self.inside(of, visitor, |at, visitor| at.fields(fields, visitor))
    }
}
