//! Builds the shape from the result of a trace.

use std::collections::HashMap;

use super::draft::{
    Content, Count, Draft, EnumDraft, Known, Node, NodeId, Slot, StructDraft, heights,
};
use super::tracer::{ANY, ENDLESS, How, TOO_LARGE, untraceable};
use super::{Field, Fields, FieldsBy, Form, MOST_PARTS, MOST_TUPLE, Shape, Type, TypeId, Variant};
use crate::Result;

/// # Errors
/// The errors of [`Shape::of`].
pub(super) fn finish(how: How, nodes: &[Node]) -> Result<Shape> {
    let name = nodes.first().map_or("", |node| &node.name);
    if is_endless(nodes) {
        return Err(untraceable(name, ENDLESS));
    }
    let mut finish = Finish { how, nodes, places: HashMap::new(), types: Vec::new() };
    finish.type_of(0)?;
    let parts: usize = finish.types.iter().map(|one| 1 + one.form.types().len()).sum();
    match parts <= MOST_PARTS {
        true => Ok(Shape { fields_by: how.fields_by, types: finish.types.into() }),
        false => Err(untraceable(name, TOO_LARGE)),
    }
}

/// Whether the record type has no value, even under the assumption that each type that refused all
/// answers has one.
fn is_endless(nodes: &[Node]) -> bool {
    let lenient: Vec<_> = nodes
        .iter()
        .map(|node| Node {
            refuses: false,
            name: String::new(),
            draft: node.draft.clone(),
            ..*node
        })
        .collect();
    heights(&lenient).first() == Some(&None)
}

fn is_of_one_type(parts: &[Slot]) -> bool {
    parts.iter().all(|part| part.is_some() && Some(part) == parts.first())
}

struct Finish<'a> {
    how: How,
    nodes: &'a [Node],
    places: HashMap<NodeId, TypeId>,
    types: Vec<Type>,
}

impl Finish<'_> {
    /// Returns the index of a type. Adds the type on its first occurrence.
    fn type_of(&mut self, id: NodeId) -> Result<TypeId> {
        if let Some(place) = self.places.get(&id) {
            return Ok(*place);
        }
        let place = TypeId::try_from(self.types.len()).unwrap_or(TypeId::MAX);
        self.places.insert(id, place);
        let name = self.nodes.get(id).map(|node| node.name.clone()).unwrap_or_default();
        self.types.push(Type { name, form: Form::Opaque(0) });
        let form = self.form(id)?;
        if let Some(one) = self.types.get_mut(place as usize) {
            one.form = form;
        }
        Ok(place)
    }

    fn form(&mut self, id: NodeId) -> Result<Form> {
        let nodes = self.nodes;
        let Some(node) = nodes.get(id) else { return Ok(Form::Opaque(0)) };
        let owner = &node.name;
        Ok(match &node.draft {
            // The type has failed before its first request.
            None => return self.unknown(owner).map(|()| Form::Opaque(0)),
            Some(Draft::Any) if self.how.fields_by == FieldsBy::Position => {
                return Err(untraceable(owner, ANY));
            }
            Some(Draft::Any) => Form::Opaque(0),
            Some(Draft::Leaf(leaf)) => Form::Leaf(*leaf),
            Some(Draft::Option(of)) => Form::Option(self.part(owner, *of)?),
            Some(Draft::Sequence(of)) => Form::Sequence(self.part(owner, *of)?),
            // The fields of a struct with `flatten` depend on the values.
            Some(Draft::Map(Some(key), _)) if self.is_any(*key) => match self.how.fields_by {
                FieldsBy::Name => Form::Opaque(0),
                FieldsBy::Position => return Err(untraceable(owner, ANY)),
            },
            Some(Draft::Map(key, value)) => {
                Form::Map(self.part(owner, *key)?, self.part(owner, *value)?)
            }
            Some(Draft::Tuple(parts)) if parts.len() > MOST_TUPLE && is_of_one_type(parts) => {
                let len = u32::try_from(parts.len()).unwrap_or(u32::MAX);
                Form::Array(self.part(owner, parts.first().copied().flatten())?, len)
            }
            Some(Draft::Tuple(parts)) => Form::Tuple(
                parts.iter().map(|part| self.part(owner, *part)).collect::<Result<_>>()?,
            ),
            Some(Draft::Struct(draft)) => Form::Struct(self.fields(owner, draft)?),
            Some(Draft::Enum(draft)) => Form::Enum(self.variants(owner, draft)?),
            Some(Draft::ByTag(contents)) => {
                let one = |(tag, of): &(String, NodeId)| Ok((tag.clone(), self.type_of(*of)?));
                Form::ByTag(contents.iter().map(one).collect::<Result<_>>()?)
            }
        })
    }

    fn is_any(&self, id: NodeId) -> bool {
        self.nodes.get(id).is_some_and(|node| matches!(node.draft, Some(Draft::Any)))
    }

    /// Returns the type of a part of `owner`.
    fn part(&mut self, owner: &str, slot: Slot) -> Result<TypeId> {
        match slot {
            Some(of) => self.type_of(of),
            None => {
                self.unknown(owner)?;
                self.types.push(Type { name: format!("part of {owner}"), form: Form::Opaque(0) });
                Ok(TypeId::try_from(self.types.len() - 1).unwrap_or(TypeId::MAX))
            }
        }
    }

    /// Handles a part that no pass has visited. By name the part is opaque. By position the shape
    /// is refused, because the layout after this part would be a guess.
    fn unknown(&self, owner: &str) -> Result<()> {
        match self.how.fields_by {
            FieldsBy::Name => Ok(()),
            FieldsBy::Position => Err(untraceable(
                owner,
                "a part of it refuses all values that were tried, so those after it are not known; declare the table with the codec `Declared<Postcard, 1>`, and raise the number when the type changes",
            )),
        }
    }

    fn fields(&mut self, owner: &str, draft: &StructDraft) -> Result<Fields> {
        let StructDraft { names, by_name, by_position, count, .. } = draft;
        let by_position_only = draft.no_map
            || self.how.fields_by == FieldsBy::Position
                && !draft.names_are_known()
                && draft.count.is_some();
        let mut fields = Vec::new();
        if by_position_only {
            let count = count.unwrap_or(names.len());
            for (name, slot) in names.iter().zip(by_position).take(count) {
                let (names, of) = (vec![name.to_string()], self.part(owner, *slot)?);
                fields.push(Field { names, aliases: Vec::new(), of, is_optional: false });
            }
            return Ok(Fields { fields, is_strict: draft.is_strict });
        }
        for (place, (name, known)) in names.iter().zip(by_name).enumerate() {
            let slot = match known {
                Known::Of(of) => Some(*of),
                Known::Unknown => None,
                Known::AliasOf(_) | Known::Refused => continue,
            };
            let aliases = by_name.iter().zip(*names);
            let aliases = aliases.filter(|(known, _)| **known == Known::AliasOf(place));
            let aliases = aliases.map(|(_, alias)| alias.to_string()).collect();
            let names = vec![name.to_string()];
            let is_optional = self.how.fields_by == FieldsBy::Name
                && draft.presence == super::draft::Presence::Known
                && draft.required.get(place) == Some(&false);
            fields.push(Field { names, aliases, of: self.part(owner, slot)?, is_optional });
        }
        Ok(Fields { fields, is_strict: draft.is_strict })
    }

    fn variants(&mut self, owner: &str, draft: &EnumDraft) -> Result<Vec<Variant>> {
        let mut variants: Vec<Variant> = Vec::new();
        let mut before = None;
        let has_aliases = draft.has_aliases();
        for one in &draft.variants {
            if has_aliases && one.discriminant.is_some() && one.discriminant == before {
                if let Some(last) = variants.last_mut() {
                    last.names.push(one.name.into());
                }
                continue;
            }
            before = one.discriminant;
            let content = match one.content {
                Content::Unit => None,
                Content::Of(of) => Some(self.type_of(of)?),
                // The type itself refuses to read this variant, so no record contains it.
                Content::Refused => Some(self.refused_variant(owner)),
                Content::Unseen => Some(self.part(owner, None)?),
            };
            variants.push(Variant { names: vec![one.name.into()], content });
        }
        Ok(variants)
    }

    fn refused_variant(&mut self, owner: &str) -> TypeId {
        self.types.push(Type { name: format!("refused by {owner}"), form: Form::Opaque(0) });
        TypeId::try_from(self.types.len() - 1).unwrap_or(TypeId::MAX)
    }
}

impl EnumDraft {
    /// Whether adjacent variants with equal discriminants are names of one variant.
    fn has_aliases(&self) -> bool {
        let mut groups = 0;
        let mut before = None;
        for one in &self.variants {
            if one.discriminant.is_none() || one.discriminant != before {
                groups += 1;
            }
            before = one.discriminant;
        }
        // With `#[serde(other)]`, any number selects a variant, so the variants cannot be counted.
        // Identifiers that are not enums all have equal discriminants.
        groups > 1 || self.count == Count::Known(groups)
    }
}
