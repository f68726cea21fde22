//! Reads a struct by position, or by name in an order that distinguishes fields from aliases.

use std::any::TypeId;

use serde::de::value::{BorrowedStrDeserializer, UnitDeserializer};
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};

use super::super::FieldsBy;
use super::super::draft::{Draft, Known, NodeId, Presence, StructDraft};
use super::super::tracer::State;
use super::{At, Refused, Result};

impl At<'_> {
    pub(super) fn fields<'de, V: Visitor<'de>>(
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
            let positions = || draft.by_position.iter().flatten();
            let by_position = match by {
                _ if draft.no_map => true,
                _ if draft.no_sequence => false,
                FieldsBy::Name => false,
                FieldsBy::Position => {
                    let is_blocked = positions().any(|part| state.height(*part).is_none());
                    !is_blocked && (!draft.has_aliases() || draft.names_are_known())
                }
            };
            let is_probe = by == FieldsBy::Name
                && draft.names_are_known()
                && draft.presence != Presence::Known
                && is_outermost;
            match () {
                () if by_position => Plan::ByPosition,
                () if is_probe => {
                    let is_required = |at: &usize| draft.required.get(*at) == Some(&true);
                    let offered = (0..draft.by_name.len()).filter(is_required).collect();
                    let unknown = draft.presence == Presence::Unknown;
                    Plan::ByName { offered, is_probe, unknown }
                }
                () => Plan::ByName { offered: offered(state, draft), is_probe, unknown: false },
            }
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

    /// Updates the draft after a struct was read by name.
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
                    // This name came after an alias of the same field, so the next pass gives this
                    // name first.
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
                // The field was left out because its type has no value.
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

    /// The type of a part of a struct. The content of an adjacently tagged enum has the type of the
    /// enum itself, and depends on the `tag` that was read before it.
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

    /// The variant that was chosen for a part, if the part is an enum without content.
    fn tag(self, part: NodeId) -> Option<String> {
        self.tracer.with(|state| match state.draft(part) {
            Some(Draft::Enum(draft)) if draft.is_plain() => {
                draft.chosen.and_then(|at| draft.variants.get(at)).map(|one| one.name.into())
            }
            _ => None,
        })
    }
}

impl StructDraft {
    /// Assumes that all fields must be present.
    fn presume_required(&mut self) {
        self.presence = Presence::Known;
        self.required.iter_mut().for_each(|required| *required = true);
    }
}

/// The indexes of the names to give, in order.
fn offered(state: &State, draft: &StructDraft) -> Vec<usize> {
    let rank = |known: &Known| match known {
        Known::Unknown => Some(0),
        Known::Of(of) if state.is_open(*of) && !state.is_active(*of) => Some(1),
        Known::Of(of) if state.height(*of).is_some() => Some(2),
        _ => None,
    };
    let mut offered: Vec<_> = draft.by_name.iter().enumerate().collect();
    offered.retain(|(_, known)| rank(known).is_some());
    let is_later = |at: &usize| !draft.first.contains(at);
    offered.sort_by_key(|(at, _)| is_later(at));
    // A part that refuses all values ends the pass, so unknown parts are given before it. If there
    // is no such part, the order stays unchanged, because a tag is read before its content.
    let refuses = |known: &Known| matches!(known, Known::Of(of) if state.height(*of).is_none());
    if draft.by_name.iter().any(refuses) {
        offered.sort_by_key(|(at, known)| (is_later(at), rank(known)));
    }
    offered.into_iter().map(|(at, _)| at).collect()
}

/// The way in which this pass reads a struct.
enum Plan {
    ByPosition,
    ByName {
        /// The indexes of the names to give, in order.
        offered: Vec<usize>,
        /// Whether only the required fields known so far are given, to find the other required
        /// fields.
        is_probe: bool,
        /// Whether an unknown field is given first.
        unknown: bool,
    },
}

/// The names that a struct was given.
struct Given {
    names: &'static [&'static str],
    /// The index of the last name.
    last: Option<usize>,
    is_probe: bool,
    unknown: bool,
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
            return seed.deserialize(UnitDeserializer::new());
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
