//! Reads an enum: each pass chooses one variant.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::de::value::{BorrowedStrDeserializer, U32Deserializer};
use serde::de::{DeserializeSeed, EnumAccess, Error as _, VariantAccess, Visitor};

use super::super::draft::{Content, Count, Draft, NodeId};
use super::super::tracer::State;
use super::{At, Refused, Result};

/// Deserializes an enum with the chosen variant.
pub(super) struct Choice<'t> {
    pub(super) at: At<'t>,
    pub(super) chosen: Chosen,
}

/// The variant that a pass answers with.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Chosen {
    name: Option<&'static str>,
    number: u32,
    /// Whether this answer serves to count the variants.
    counts: bool,
}

impl State {
    /// Chooses a variant of the enum: an unknown variant if there is one, otherwise a variant that
    /// contains unknown parts, otherwise the smallest variant. If no variant has content, or if
    /// earlier answers were refused or gave no new results, the variants that can be read take
    /// turns.
    pub(in super::super) fn choose(&mut self, id: NodeId) -> Chosen {
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
        // Steers to the nearest incomplete type. A shortest path visits no type twice.
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
                // The type does not identify variants by name, so it may identify them by number.
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
pub(super) struct VariantContent<'t> {
    at: At<'t>,
}

impl<'t> VariantContent<'t> {
    /// Records the content. `part` creates the node if the content is not known yet.
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
