//! The deserializer of a trace, which records each request and answers it.

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::draft::{Draft, EnumDraft, NodeId};
use super::probes::{ANY, BYTES, CHARS, FLOATS, SIGNED, STRINGS, UNSIGNED, answers};
use super::refused::Refused;
use super::tracer::{Tracer, bare, untraceable};
use super::{Leaf, MOST_TUPLE, type_name};
use enums::Choice;

mod enums;
mod structs;

type Result<T, E = Refused> = std::result::Result<T, E>;

/// The largest number of elements of an array. A pass visits each element.
// A longer array counts as too many parts, so that its type is refused. Otherwise a pass would take
// seconds.
const MOST_ARRAY: usize = 1 << 20;

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

    /// Records the request of the type. The request must be the same in each pass.
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

    /// Adds the node of an inner type that has no seed of its own.
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
}

macro_rules! leaves {
    ($($method:ident $leaf:ident $visit:ident $answers:ident as $type:ty;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            let answer = self.leaf(Leaf::$leaf)?;
            // An integer that does not fit is truncated, which is still a valid answer.
            let value = $answers.get(answer).copied().unwrap_or_default();
            self.of(visitor.$visit(value as $type))
        }
    )*};
}

impl Tracer {
    /// Deserializes a part.
    pub(super) fn part<'de, S: DeserializeSeed<'de>>(
        &self,
        id: NodeId,
        seed: S,
    ) -> Result<S::Value, Refused> {
        self.enter(id).inspect_err(|_| self.leave(id, true))?;
        let result = seed.deserialize(At::new(self, id));
        self.leave(id, result.is_err());
        result
    }
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

    /// Only a map whose keys are the fields of a struct, as with `flatten`, requests an identifier
    /// here.
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
        if !tracer.with(|state| state.needs(node, part)) {
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

    /// No codec writes bytes for a newtype, so the inner type takes its place.
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
            usize::from(state.needs(node, part))
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
            // The type requests the key first, so an entry is given only if there is a value for
            // the key.
            let has_key = key.is_none_or(|key| state.height(key).is_some() || state.is_open(key));
            usize::from(has_key && (state.needs(node, key) || state.needs(node, value)))
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
    /// Refuses a part that has another type than in earlier passes.
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
            // With `flatten`, the key is the name of a field, and the value has the type of that
            // field.
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
