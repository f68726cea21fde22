//! Compares the shape of a type with the shape of the records in the store, to decide which records
//! the type can read.
//!
//! The shape in the store describes all records that programs have written to it. So the stored
//! shape is joined with the shape of each accepted program. For example, a field that only some of
//! the programs write becomes optional.
//!
//! | change | by position | by name |
//! |---|---|---|
//! | another name of a type, a newtype around a part | read | read |
//! | a field with another name that is read under its old name too (`alias`) | read | read, one way |
//! | a field added: optional, or with a `default` | refused | read |
//! | a field added: required | refused | refused |
//! | a field removed: optional | refused | read |
//! | a field removed: required | refused | read, one way |
//! | fields or variants exchanged | refused | read |
//! | an integer widened (up to 64 bits), a `T` to an `Option<T>` | refused | read, one way |
//! | a variant added | at the end: read, one way | read, one way |
//! | anything else | refused | refused |
//!
//! *One way*: a program with the earlier type cannot read all records that a program with the new
//! type writes.

use std::collections::HashMap;
use std::fmt;

use super::{Field, Fields, FieldsBy, Form, Leaf, Shape, Type, TypeId, Variant};

/// The result of a comparison: how a type reads the records of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Stored records can be read as the type, and the type writes records of the same shape.
    Same,
    /// The type reads the records. Records then have the joined shape, which earlier programs read
    /// as well.
    BothWays(Shape),
    /// The type reads the records. Records then have the joined shape, which earlier programs
    /// cannot read.
    OneWay(Shape, Difference),
}

/// The first difference that prevents reading bytes of one shape as another shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path of the field, such as `lines[].price`; empty for the record itself.
    pub field: String,
    /// The part in the stored shape.
    pub stored: String,
    /// The part in the shape of the program.
    pub declared: String,
    /// How to undo such a change, or how to make it compatible.
    pub remedy: &'static str,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, stored, declared, .. } = self;
        match field.is_empty() {
            true => write!(f, "the record is {stored} in the store and {declared} in the program"),
            false => write!(f, "`{field}` is {stored} in the store and {declared} in the program"),
        }
    }
}

const BY_POSITION: &str = "fields by position are read in the order and with the types that were written; restore the field (one that got another name takes `#[serde(alias = \"old name\")]`), or give the type a version with an upgrade from the stored one (`keyloom::value::Upgrade`)";
const REQUIRED: &str = "records without this field exist; give it `#[serde(default)]`";
const ALIAS: &str =
    "records hold it under another name too; add `#[serde(alias = \"old name\")]` for each";
const OTHER_NAME: &str =
    "programs would read it as the other field; give the new field another name";
const STRICT: &str =
    "the type refuses unknown fields; keep the field, or remove `deny_unknown_fields`";
const TYPE: &str = "a field keeps its type; add a field with another name and a default and remove this one, or give the type a version with an upgrade from the stored one (`keyloom::value::Upgrade`)";
const VARIANT: &str = "records may hold each variant that was written; keep it, and add others";
const UPGRADE: &str =
    "keep the upgrade from this version until `Table::migrate` has rewritten all records of it";
const OPAQUE: &str = "the parts of this type are not known, so it keeps its name and version";

impl Shape {
    /// Compares the shape of a program with the shape of the records in the store. The
    /// [module](super) lists the properties of a type that a shape does not include.
    ///
    /// ```
    /// use keyloom::value::shape::{FieldsBy, Reads, Shape};
    /// use serde::Deserialize;
    /// mod v1 { #[derive(serde::Deserialize)] pub struct Photo { width: u32, height: u32 } }
    /// mod v2 { #[derive(serde::Deserialize)] pub struct Photo { height: u32, width: u32 } }
    /// let stored = Shape::of::<v1::Photo>(FieldsBy::Position, false)?;
    /// let program = Shape::of::<v2::Photo>(FieldsBy::Position, false)?;
    /// assert_eq!(program.reads(&stored).unwrap_err().field, "height");
    ///
    /// let stored = Shape::of::<v1::Photo>(FieldsBy::Name, true)?;
    /// let program = Shape::of::<v2::Photo>(FieldsBy::Name, true)?;
    /// assert_eq!(program.reads(&stored), Ok(Reads::Same));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first [`Difference`] that would make some records unreadable or misread.
    pub fn reads(&self, stored: &Self) -> Result<Reads, Difference> {
        if self == stored {
            return Ok(Reads::Same);
        }
        let read = self.versions_in(stored)?;
        let (joined, has_changed) = Join::of(stored, read.as_ref().unwrap_or(self))?;
        if !has_changed {
            return Ok(Reads::Same);
        }
        Ok(match Join::of(&joined, stored) {
            Ok(_) => Reads::BothWays(joined),
            Err(difference) => Reads::OneWay(joined, difference),
        })
    }
}

impl Shape {
    /// For records with versions: returns the shape of the program with its newest version, and
    /// with those earlier versions of which the store may contain records. The program reads
    /// earlier versions, but does not write them.
    fn versions_in(&self, stored: &Self) -> Joined<Option<Self>> {
        let (Some(known), Some(old)) = (self.version_numbers(), stored.version_numbers()) else {
            return Ok(None);
        };
        if let Some(lost) = old.iter().find(|number| !known.contains(number)) {
            return Err(Difference {
                field: String::new(),
                stored: match lost {
                    0 => "also without a version".into(),
                    lost => format!("also of version {lost}"),
                },
                declared: "without an upgrade from it".into(),
                remedy: UPGRADE,
            });
        }
        let newest = known.iter().max();
        Ok(Some(self.with_versions(|number| old.contains(&number) || Some(&number) == newest)))
    }
}

/// The join of the stored shape and the shape of a program.
struct Join<'a> {
    stored: &'a Shape,
    program: &'a Shape,
    types: Vec<Type>,
    /// The joined type for two types, or for one type that the other side lacks.
    places: HashMap<(Option<TypeId>, Option<TypeId>), TypeId>,
    /// Whether the joined shape differs from the stored one.
    has_changed: bool,
    path: Vec<String>,
}

type Joined<T> = Result<T, Difference>;

impl<'a> Join<'a> {
    fn of(stored: &'a Shape, program: &'a Shape) -> Joined<(Shape, bool)> {
        let (types, places, path) = (Vec::new(), HashMap::new(), Vec::new());
        let mut join = Join { stored, program, types, places, has_changed: false, path };
        if stored.fields_by != program.fields_by {
            return Err(join.differs(0, 0, OPAQUE));
        }
        join.both(0, 0)?;
        Ok((Shape { fields_by: stored.fields_by, types: join.types.into() }, join.has_changed))
    }

    fn is_by_name(&self) -> bool {
        self.stored.fields_by == FieldsBy::Name
    }

    /// The difference between two types.
    fn differs(&self, stored: TypeId, program: TypeId, remedy: &'static str) -> Difference {
        let [mut stored, mut declared] = [self.stored.short(stored), self.program.short(program)];
        if stored == declared {
            (stored, declared) = (format!("another {stored}"), format!("this {declared}"));
        }
        self.difference(stored, declared, remedy)
    }

    fn difference(&self, stored: String, declared: String, remedy: &'static str) -> Difference {
        let remedy = if self.is_by_name() || remedy == OPAQUE { remedy } else { BY_POSITION };
        let field = self.path.concat();
        let field = field.strip_prefix('.').unwrap_or(&field).to_owned();
        Difference { field, stored, declared, remedy }
    }

    /// Runs `work` for a part of the type. Errors of `work` include the name of the part.
    fn inside<T>(&mut self, part: String, work: impl FnOnce(&mut Self) -> Joined<T>) -> Joined<T> {
        self.path.push(part);
        let result = work(self);
        self.path.pop();
        result
    }

    /// Reserves a place in the list before the type is known, since the type may contain itself.
    fn reserve(&mut self, key: (Option<TypeId>, Option<TypeId>), name: &str) -> TypeId {
        let place = TypeId::try_from(self.types.len()).unwrap_or(TypeId::MAX);
        self.places.insert(key, place);
        self.types.push(Type { name: name.into(), form: Form::Opaque(0) });
        place
    }

    fn fill(&mut self, place: TypeId, form: Form) -> TypeId {
        if let Some(one) = self.types.get_mut(place as usize) {
            one.form = form;
        }
        place
    }

    fn both(&mut self, stored: TypeId, program: TypeId) -> Joined<TypeId> {
        let key = (Some(stored), Some(program));
        if let Some(place) = self.places.get(&key) {
            return Ok(*place);
        }
        let (old, new) = (self.stored, self.program);
        let place = self.reserve(key, &old.at(stored).name);
        let form = self.form(stored, program, &old.at(stored).form, &new.at(program).form)?;
        Ok(self.fill(place, form))
    }

    fn form(
        &mut self,
        stored: TypeId,
        program: TypeId,
        old: &'a Form,
        new: &'a Form,
    ) -> Joined<Form> {
        Ok(match (old, new) {
            (Form::Leaf(a), Form::Leaf(b)) if a == b => old.clone(),
            (Form::Leaf(a), Form::Leaf(b)) if self.is_by_name() && is_wider(*a, *b) => {
                self.has_changed = true;
                new.clone()
            }
            (Form::Opaque(a), Form::Opaque(b)) => {
                let same_name = self.stored.at(stored).name == self.program.at(program).name;
                if a != b || !same_name {
                    return Err(self.differs(stored, program, OPAQUE));
                }
                old.clone()
            }
            (Form::Option(a), Form::Option(b)) => Form::Option(self.both(*a, *b)?),
            // Codecs by name write a unit as null, which would be read as `None`.
            (Form::Leaf(Leaf::Unit), Form::Option(_)) => {
                return Err(self.differs(stored, program, TYPE));
            }
            (
                Form::Leaf(_)
                | Form::Sequence(_)
                | Form::Tuple(_)
                | Form::Array(..)
                | Form::Map(..)
                | Form::Struct(_)
                | Form::Enum(_),
                Form::Option(b),
            ) if self.is_by_name() => {
                self.has_changed = true;
                Form::Option(self.both(stored, *b)?)
            }
            // A set would drop equal elements and the order.
            (Form::Sequence(_), Form::Sequence(_))
                if is_set(&self.program.at(program).name)
                    && !is_set(&self.stored.at(stored).name) =>
            {
                let (stored, declared) = (self.stored.short(stored), "a set".into());
                return Err(self.difference(stored, declared, TYPE));
            }
            (Form::Sequence(a), Form::Sequence(b)) => {
                Form::Sequence(self.inside("[]".into(), |join| join.both(*a, *b))?)
            }
            (Form::Array(a, len), Form::Array(b, new_len)) if len == new_len => {
                Form::Array(self.inside("[]".into(), |join| join.both(*a, *b))?, *len)
            }
            (Form::Map(key, value), Form::Map(new_key, new_value)) => {
                let key = self.inside("{key}".into(), |join| join.both(*key, *new_key))?;
                Form::Map(key, self.inside("{}".into(), |join| join.both(*value, *new_value))?)
            }
            (Form::Tuple(a), Form::Tuple(b)) if a.len() == b.len() => {
                let mut parts = Vec::new();
                for (at, (a, b)) in a.iter().zip(b).enumerate() {
                    parts.push(self.inside(format!(".{at}"), |join| join.both(*a, *b))?);
                }
                Form::Tuple(parts)
            }
            (Form::Struct(a), Form::Struct(b)) => {
                let is_strict = a.is_strict || b.is_strict;
                self.has_changed |= is_strict != a.is_strict;
                let fields = match self.is_by_name() {
                    true => self.fields_by_name(a, b)?,
                    false => self.fields_by_position(a, b)?,
                };
                Form::Struct(Fields { fields, is_strict })
            }
            (Form::Enum(a), Form::Enum(b)) => Form::Enum(self.variants(stored, program, a, b)?),
            (Form::ByTag(a), Form::ByTag(b)) => Form::ByTag(self.by_tag(stored, program, a, b)?),
            _ => return Err(self.differs(stored, program, TYPE)),
        })
    }

    fn fields_by_position(&mut self, old: &'a Fields, new: &'a Fields) -> Joined<Vec<Field>> {
        let mut fields = Vec::new();
        let most = old.fields.len().max(new.fields.len());
        for at in 0..most {
            let (a, b) = (old.fields.get(at), new.fields.get(at));
            let pair = a.zip(b).filter(|(a, b)| b.reads_some(&a.names));
            let Some((a, b)) = pair else {
                let place = at + 1;
                let shown = |shape: &Shape, field: Option<&Field>| match field {
                    Some(field) => {
                        format!("field {place}, `{}` of {}", field.name(), shape.short(field.of))
                    }
                    None => "no field".into(),
                };
                let (stored, declared) = (shown(self.stored, a), shown(self.program, b));
                let name = b.or(a).map_or("", Field::name);
                return self.inside(format!(".{name}"), |join| {
                    Err(join.difference(stored, declared, BY_POSITION))
                });
            };
            let of = self.inside(format!(".{}", b.name()), |join| join.both(a.of, b.of))?;
            fields.push(self.field(a, b, of, false));
        }
        Ok(fields)
    }

    /// Joins a field: its names are all names that any of the programs writes or reads.
    fn field(&mut self, old: &Field, new: &Field, of: TypeId, is_optional: bool) -> Field {
        let names = union(&old.names, &new.names);
        let aliases = union(&old.aliases, &new.aliases);
        let aliases: Vec<_> = aliases.into_iter().filter(|name| !names.contains(name)).collect();
        self.has_changed |=
            (&names, &aliases, is_optional) != (&old.names, &old.aliases, old.is_optional);
        Field { names, aliases, of, is_optional }
    }

    fn fields_by_name(&mut self, old: &'a Fields, new: &'a Fields) -> Joined<Vec<Field>> {
        let mut fields = Vec::new();
        for a in &old.fields {
            let joined = match new.fields.iter().find(|b| b.reads_some(&a.names)) {
                Some(b) => self.field_by_name(old, a, b)?,
                None => self.removed_field(a, new)?,
            };
            fields.push(joined);
        }
        for b in &new.fields {
            if old.fields.iter().any(|a| b.reads_some(&a.names)) {
                continue;
            }
            if let Some(a) = old.fields.iter().find(|a| share(&a.aliases, &b.names)) {
                let stored = format!("another name of `{}`, which programs read", a.name());
                return self.inside(format!(".{}", b.name()), |join| {
                    Err(join.difference(stored, "a field of its own".into(), OTHER_NAME))
                });
            }
            if !b.is_optional {
                let declared = format!("required, of {}", self.program.short(b.of));
                return self.inside(format!(".{}", b.name()), |join| {
                    Err(join.difference("missing".into(), declared, REQUIRED))
                });
            }
            self.has_changed = true;
            let of = self.only_new(b.of);
            fields.push(Field { of, is_optional: true, ..b.clone() });
        }
        Ok(fields)
    }

    fn field_by_name(&mut self, old: &'a Fields, a: &'a Field, b: &'a Field) -> Joined<Field> {
        self.inside(format!(".{}", b.name()), |join| {
            let shared = old.fields.iter().filter(|other| b.reads_some(&other.names)).count();
            let is_covered = a.names.iter().all(|name| b.reads_name(name));
            if shared > 1 || !is_covered {
                let stored = match shared > 1 {
                    true => "several fields".into(),
                    false => format!("written as `{}`", a.names.join("` and `")),
                };
                let names = [&b.names[..], &b.aliases[..]].concat();
                let declared = format!("read as `{}`", names.join("` and `"));
                return Err(join.difference(stored, declared, ALIAS));
            }
            if a.is_optional && !b.is_optional {
                let of = join.program.short(b.of);
                let [stored, declared] =
                    ["optional", "required"].map(|is| format!("{is}, of {of}"));
                return Err(join.difference(stored, declared, REQUIRED));
            }
            let of = join.both(a.of, b.of)?;
            Ok(join.field(a, b, of, a.is_optional || b.is_optional))
        })
    }

    /// Joins a field that the program does not have, so its records lack the field.
    fn removed_field(&mut self, a: &'a Field, new: &Fields) -> Joined<Field> {
        if new.is_strict {
            let stored = format!("of {}", self.stored.short(a.of));
            return self.inside(format!(".{}", a.name()), |join| {
                Err(join.difference(stored, "unknown".into(), STRICT))
            });
        }
        self.has_changed |= !a.is_optional;
        Ok(Field { of: self.only_old(a.of), is_optional: true, ..a.clone() })
    }

    fn variants(
        &mut self,
        stored: TypeId,
        program: TypeId,
        old: &'a [Variant],
        new: &'a [Variant],
    ) -> Joined<Vec<Variant>> {
        let mut variants = Vec::new();
        for (at, a) in old.iter().enumerate() {
            let name = a.names.first().map_or("", String::as_str);
            let found = match self.is_by_name() {
                true => new.iter().find(|b| a.names.iter().all(|name| b.names.contains(name))),
                false => new.get(at).filter(|b| share(&a.names, &b.names)),
            };
            let Some(b) = found else {
                let declared = match new.get(at).filter(|_| !self.is_by_name()) {
                    Some(b) => format!("variant {at}, `{}`", b.names.join("|")),
                    None => format!("no variant of {}", self.program.short(program)),
                };
                let of = self.stored.short(stored);
                let stored = format!("variant {at} of {of}, `{}`", a.names.join("|"));
                return self.inside(format!("::{name}"), |join| {
                    Err(join.difference(stored, declared, VARIANT))
                });
            };
            let content =
                self.inside(format!("::{name}"), |join| match (a.content, b.content) {
                    (None, None) => Ok(None),
                    (Some(a), Some(b)) => join.both(a, b).map(Some),
                    (a, b) => {
                        let shown = |shape: &Shape, of: Option<TypeId>| {
                            of.map_or("without content".into(), |of| {
                                format!("of {}", shape.short(of))
                            })
                        };
                        let (stored, declared) = (shown(join.stored, a), shown(join.program, b));
                        Err(join.difference(stored, declared, TYPE))
                    }
                })?;
            let mut names = a.names.clone();
            for name in b.names.iter().filter(|name| !a.names.contains(name)) {
                names.push(name.clone());
                self.has_changed = true;
            }
            variants.push(Variant { names, content });
        }
        for b in new {
            if !variants.iter().any(|a| share(&a.names, &b.names)) {
                self.has_changed = true;
                let content = b.content.map(|of| self.only_new(of));
                variants.push(Variant { names: b.names.clone(), content });
            }
        }
        Ok(variants)
    }

    fn by_tag(
        &mut self,
        stored: TypeId,
        program: TypeId,
        old: &'a [(String, TypeId)],
        new: &'a [(String, TypeId)],
    ) -> Joined<Vec<(String, TypeId)>> {
        let mut contents = Vec::new();
        for (tag, a) in old {
            let Some((_, b)) = new.iter().find(|(other, _)| other == tag) else {
                return Err(self.differs(stored, program, VARIANT));
            };
            let of = self.inside(format!("::{tag}"), |join| join.both(*a, *b))?;
            contents.push((tag.clone(), of));
        }
        for (tag, b) in new {
            if !old.iter().any(|(other, _)| other == tag) {
                self.has_changed = true;
                contents.push((tag.clone(), self.only_new(*b)));
            }
        }
        Ok(contents)
    }

    fn only_old(&mut self, id: TypeId) -> TypeId {
        self.copy(self.stored, id, |id| (Some(id), None))
    }

    fn only_new(&mut self, id: TypeId) -> TypeId {
        self.copy(self.program, id, |id| (None, Some(id)))
    }

    /// Copies a type that only one side has.
    fn copy(
        &mut self,
        shape: &'a Shape,
        id: TypeId,
        key: fn(TypeId) -> (Option<TypeId>, Option<TypeId>),
    ) -> TypeId {
        if let Some(place) = self.places.get(&key(id)) {
            return *place;
        }
        let one = shape.at(id);
        let place = self.reserve(key(id), &one.name);
        let mut form = one.form.clone();
        form.types_mut().into_iter().for_each(|of| *of = self.copy(shape, *of, key));
        self.fill(place, form)
    }
}

impl Field {
    fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    fn reads_name(&self, name: &String) -> bool {
        self.names.contains(name) || self.aliases.contains(name)
    }

    fn reads_some(&self, names: &[String]) -> bool {
        names.iter().any(|name| self.reads_name(name))
    }
}

/// The names of `a`, and the names of `b` that are not in `a`.
fn union(a: &[String], b: &[String]) -> Vec<String> {
    let others = b.iter().filter(|name| !a.contains(name));
    a.iter().chain(others).cloned().collect()
}

/// Whether a sequence drops duplicates or changes the order, judged by the name of its type.
fn is_set(name: &str) -> bool {
    ["BTreeSet<", "HashSet<", "IndexSet<", "BinaryHeap<"].iter().any(|set| name.starts_with(set))
}

fn share(a: &[String], b: &[String]) -> bool {
    a.iter().any(|name| b.contains(name))
}

/// Whether each value of the integer type `a` is a value of `b`. Codecs by name write integers of
/// up to 64 bits by value.
fn is_wider(a: Leaf, b: Leaf) -> bool {
    let bits = |leaf| match leaf {
        Leaf::I8 => Some((true, 8)),
        Leaf::I16 => Some((true, 16)),
        Leaf::I32 => Some((true, 32)),
        Leaf::I64 => Some((true, 64)),
        Leaf::U8 => Some((false, 8)),
        Leaf::U16 => Some((false, 16)),
        Leaf::U32 => Some((false, 32)),
        Leaf::U64 => Some((false, 64)),
        _ => None,
    };
    match (bits(a), bits(b)) {
        (Some((signed, from)), Some((is_signed, to))) if signed == is_signed => from <= to,
        (Some((false, from)), Some((true, to))) => from < to,
        _ => false,
    }
}
