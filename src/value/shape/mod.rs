//! Shapes: the structure of the bytes of a record, which decides which types can read them.
//!
//! Bytes that were written as one type must not be read as another. [`Postcard`] writes neither
//! names nor types, so two exchanged fields, or an `i64` that became a `u64`, decode without an
//! error and to another value. A [`Shape`] records the fields, types and variants of a type, nested
//! types included. A schema stores the shape with each table, and compares the stored shape when a
//! program declares the table.
//!
//! A shape is found without a value: the type's `Deserialize` runs on a deserializer that records
//! each request and answers it with an arbitrary value. Several passes visit every variant of every
//! enum. A type that accepts none of the answers, such as a string that must match a pattern,
//! counts as the primitive that it requested. So a trace runs code of the type, within
//! [`catch_unwind`](std::panic::catch_unwind). If a type panics on an answer instead of refusing
//! it, the panic message is printed.
//!
//! A shape is not complete. Types that require a self-describing format (`untagged`, `tag`,
//! `flatten`, `serde_json::Value`) are recorded only by their names; codecs by name accept these
//! types, and [`Postcard`] does not. A shape does not include the values that a type refuses, the
//! default of a field, or a name that only `Serialize` uses (`rename(serialize = ..)`).
//!
//! ```
//! use keyloom::value::{Codec, Postcard};
//! use serde::{Deserialize, Serialize};
//! #[derive(Serialize, Deserialize)]
//! struct Photo { title: String, width: u32, height: u32 }
//! let shape = <Postcard as Codec<Photo>>::shape()?;
//! assert_eq!(shape.to_string(), "Photo {title: string, width: u32, height: u32}");
//! # Ok::<(), keyloom::Error>(())
//! ```

mod compare;
mod draft;
mod finish;
mod probes;
mod read;
mod refused;
mod requests;
mod show;
mod trace;
mod tracer;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use compare::{Difference, Reads};

use super::proven::Format;
use super::{Postcard, failed};
use crate::{Error, Result};

/// The largest number of types, fields and variants of a shape. A typical record type has ten
/// to a hundred of them.
pub(crate) const MOST_PARTS: usize = 4_096;

/// The largest number of parts of a tuple that are listed one by one if they have one type. A
/// longer tuple with parts of one type is recorded as an array.
// A list of the equal types of a long array would take memory in proportion to the length of the
// array.
pub(crate) const MOST_TUPLE: usize = 64;

/// The format of the bytes of a shape.
const FORMAT: u8 = 1;

/// Whether a codec writes the fields of a struct and the variants of an enum by name or by
/// position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FieldsBy {
    /// By name, as JSON does: fields may be added, removed and reordered.
    Name,
    /// By position, as Postcard does: the reader must know all fields and their order.
    Position,
}

/// The fields, types and variants that the bytes of a record consist of; see the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    fields_by: FieldsBy,
    /// The first type is the record itself. Types refer to other types, and to themselves, by
    /// index.
    types: Arc<[Type]>,
}

/// The name of the type that represents records with versions.
const VERSIONS: &str = "versions";

/// The index of a type in a shape.
type TypeId = u32;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Type {
    /// The name without module paths. Names are shown. A comparison of shapes uses them only for
    /// opaque types, and to distinguish sets from lists.
    name: String,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Leaf {
    Bool,
    I8,
    I16,
    I32,
    I64,
    I128,
    U8,
    U16,
    U32,
    U64,
    U128,
    F32,
    F64,
    Char,
    String,
    Bytes,
    Unit,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Form {
    Leaf(Leaf),
    /// A type known only by its name and this version.
    Opaque(u32),
    Option(TypeId),
    Sequence(TypeId),
    Tuple(Vec<TypeId>),
    /// More than [`MOST_TUPLE`] parts of one type.
    Array(TypeId, u32),
    Map(TypeId, TypeId),
    Struct(Fields),
    Enum(Vec<Variant>),
    /// The content of an adjacently tagged enum by variant, or the records of a type by version.
    ByTag(Vec<(String, TypeId)>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Fields {
    fields: Vec<Field>,
    /// Whether the type refuses unknown fields.
    is_strict: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Field {
    /// The names under which the field is written. Each program writes one name; different programs
    /// may write different names.
    names: Vec<String>,
    /// Other names that are read (`#[serde(alias)]`).
    aliases: Vec<String>,
    of: TypeId,
    /// Whether a record may lack the field. Always `false` for fields by position.
    is_optional: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Variant {
    names: Vec<String>,
    /// `None` for a variant without content.
    content: Option<TypeId>,
}

impl Shape {
    /// The shape that a serde format writes for `V`, found through the `Deserialize` of `V`.
    ///
    /// ```
    /// use keyloom::value::shape::{FieldsBy, Shape};
    /// let shape = Shape::of::<Vec<(u8, Option<String>)>>(FieldsBy::Position, false)?;
    /// assert_eq!(shape.to_string(), "list of (u8, optional string)");
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the shape cannot be found. This happens if the type has no
    /// value (for example because it contains itself without end), has more than 4,096 parts, or
    /// has parts whose types depend on values. By position, it also happens if a part requires a
    /// self-describing format or refuses all values that a trace tries. Declare a table of such a
    /// type with the codec [`Declared`](super::Declared).
    pub fn of<V: DeserializeOwned>(fields_by: FieldsBy, is_human_readable: bool) -> Result<Self> {
        trace::trace::<V>(tracer::How { fields_by, is_human_readable })
    }

    /// The shape of bytes whose parts are not known: a name and a version. Two such shapes are
    /// equal if name and version are equal.
    ///
    /// A [codec](super::Codec) of a program returns a named shape for a type whose bytes the codec
    /// determines itself. Raise the version when the bytes change. It is at least 1.
    pub fn named(name: impl Into<String>, version: u32) -> Self {
        let types = [Type { name: name.into(), form: Form::Opaque(version.max(1)) }];
        Self { fields_by: FieldsBy::Position, types: types.into() }
    }

    /// The shape of records that have [versions](super::upgrade), each with its own shape. The
    /// number 0 stands for records without a version.
    pub fn versions(shapes: impl IntoIterator<Item = (u8, Self)>) -> Self {
        let mut fields_by = FieldsBy::Position;
        let name = VERSIONS.to_owned();
        let mut types = vec![Type { name, form: Form::ByTag(Vec::new()) }];
        let mut versions = Vec::new();
        for (number, shape) in shapes {
            let first = types.len() as TypeId;
            versions.push((number.to_string(), first));
            fields_by = shape.fields_by;
            types.extend(shape.types.iter().cloned().map(|mut one| {
                one.form.types_mut().into_iter().for_each(|of| *of += first);
                one
            }));
        }
        if let Some(root) = types.first_mut() {
            root.form = Form::ByTag(versions);
        }
        Self { fields_by, types: types.into() }
    }

    /// The numbers of the [versions](Shape::versions) of the records; `None` if the records have no
    /// versions.
    ///
    /// In a schema, these are the versions of records that the store may contain. If the number of
    /// an earlier version is missing, its upgrade can be removed from the program.
    ///
    /// ```
    /// use keyloom::value::shape::{FieldsBy, Shape};
    /// let shape = Shape::of::<u32>(FieldsBy::Position, false)?;
    /// assert_eq!(shape.version_numbers(), None);
    /// let versions = Shape::versions([(0, shape.clone()), (2, shape)]);
    /// assert_eq!(versions.version_numbers(), Some(vec![0, 2]));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn version_numbers(&self) -> Option<Vec<u8>> {
        Some(self.tags()?.iter().filter_map(|(number, _)| number.parse().ok()).collect())
    }

    /// The shape of the records of one [version](Shape::versions); `None` if there is no such
    /// version.
    pub fn version(&self, number: u8) -> Option<Self> {
        let tag = number.to_string();
        let (_, of) = self.tags()?.iter().find(|(number, _)| *number == tag)?;
        Some(self.part(*of))
    }

    /// The shape with only the versions for which `keep` returns `true`.
    #[must_use]
    pub fn with_versions(&self, keep: impl Fn(u8) -> bool) -> Self {
        let Some(tags) = self.tags() else { return self.clone() };
        let numbered = tags.iter().filter_map(|(number, of)| Some((number.parse().ok()?, *of)));
        let kept = numbered.filter(|(number, _)| keep(*number));
        Self::versions(kept.map(|(number, of)| (number, self.part(of))))
    }

    /// The shape of one of the types.
    fn part(&self, root: TypeId) -> Self {
        let (mut kept, mut next) = (vec![root], 0);
        while let Some(id) = kept.get(next) {
            for of in self.at(*id).form.types() {
                if !kept.contains(&of) {
                    kept.push(of);
                }
            }
            next += 1;
        }
        let place = |id: TypeId| kept.iter().position(|kept| *kept == id).unwrap_or(0) as TypeId;
        let moved = |id: &TypeId| {
            let mut one = self.at(*id).clone();
            one.form.types_mut().into_iter().for_each(|of| *of = place(*of));
            one
        };
        Self { fields_by: self.fields_by, types: kept.iter().map(moved).collect() }
    }

    fn tags(&self) -> Option<&[(String, TypeId)]> {
        match self.root() {
            Type { name, form: Form::ByTag(tags) } if name == VERSIONS => Some(tags),
            _ => None,
        }
    }

    /// Whether the shape was made by [`named`](Shape::named), so that its parts are not known.
    pub fn is_named(&self) -> bool {
        matches!(self.root().form, Form::Opaque(version) if version > 0)
    }

    /// The name of the type, without module paths.
    pub fn name(&self) -> &str {
        &self.root().name
    }

    /// Whether fields and variants are written by name or by position.
    pub fn fields_by(&self) -> FieldsBy {
        self.fields_by
    }

    fn root(&self) -> &Type {
        self.at(0)
    }

    fn at(&self, id: TypeId) -> &Type {
        const NONE: &Type = &Type { name: String::new(), form: Form::Opaque(0) };
        self.types.get(id as usize).unwrap_or(NONE)
    }

    /// The shape as bytes, to be stored.
    ///
    /// # Errors
    /// [`Error::Value`] if the shape cannot be encoded; no such shape is known.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![FORMAT];
        Postcard::write(&(self.fields_by, &self.types[..]), &mut bytes)
            .map_err(failed("shape", "encode"))?;
        Ok(bytes)
    }

    /// Reads the bytes of [`to_bytes`](Shape::to_bytes).
    ///
    /// # Errors
    /// [`Error::NewerFormat`]; [`Error::Value`] for bytes that are not a shape.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        match bytes.split_first() {
            Some((&FORMAT, rest)) => {
                let (fields_by, types): (FieldsBy, Vec<Type>) =
                    Postcard::read(rest).map_err(failed("shape", "decode"))?;
                let is_inside = |id: &TypeId| (*id as usize) < types.len();
                match types.iter().all(|one| one.form.types().iter().all(is_inside)) {
                    true if !types.is_empty() => Ok(Self { fields_by, types: types.into() }),
                    _ => Err(failed("shape", "decode")("a type refers to no type")),
                }
            }
            Some((&format, _)) if format > FORMAT => Err(Error::NewerFormat {
                what: "the shape of a record".into(),
                found: format.into(),
                supported: FORMAT.into(),
            }),
            _ => Err(failed("shape", "decode")("it is not a shape")),
        }
    }
}

/// The shapes of the types that this program has traced.
// Without this cache, a schema of ten tables opened in 949 µs, mostly to trace their ten types.
// Before there were shapes, it opened in 127 µs.
static KNOWN: Mutex<BTreeMap<(std::any::TypeId, bool, bool), Shape>> = Mutex::new(BTreeMap::new());

/// [`Shape::of`], traced once for each type: opening a schema again costs only a copy.
pub(super) fn of_known<V: DeserializeOwned>(
    fields_by: FieldsBy,
    is_human_readable: bool,
) -> Result<Shape> {
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (typeid::of::<V>(), fields_by == FieldsBy::Name, is_human_readable);
    if let Some(shape) = known().get(&key) {
        return Ok(shape.clone());
    }
    // The lock is not held here, since the type's code may do anything.
    let shape = Shape::of::<V>(fields_by, is_human_readable)?;
    known().insert(key, shape.clone());
    Ok(shape)
}

impl Form {
    /// The types of the parts of this type.
    fn types(&self) -> Vec<TypeId> {
        match self {
            Self::Leaf(_) | Self::Opaque(_) => Vec::new(),
            Self::Option(of) | Self::Sequence(of) | Self::Array(of, _) => vec![*of],
            Self::Map(key, value) => vec![*key, *value],
            Self::Tuple(parts) => parts.clone(),
            Self::Struct(Fields { fields, .. }) => fields.iter().map(|field| field.of).collect(),
            Self::Enum(variants) => variants.iter().filter_map(|one| one.content).collect(),
            Self::ByTag(contents) => contents.iter().map(|(_, of)| *of).collect(),
        }
    }

    fn types_mut(&mut self) -> Vec<&mut TypeId> {
        match self {
            Self::Leaf(_) | Self::Opaque(_) => Vec::new(),
            Self::Option(of) | Self::Sequence(of) | Self::Array(of, _) => vec![of],
            Self::Map(key, value) => vec![key, value],
            Self::Tuple(parts) => parts.iter_mut().collect(),
            Self::Struct(Fields { fields, .. }) => {
                fields.iter_mut().map(|field| &mut field.of).collect()
            }
            Self::Enum(variants) => {
                variants.iter_mut().filter_map(|one| one.content.as_mut()).collect()
            }
            Self::ByTag(contents) => contents.iter_mut().map(|(_, of)| of).collect(),
        }
    }
}

/// The name of a type without module paths: `Vec<City>`.
pub fn type_name<T: ?Sized>() -> String {
    let mut name = String::new();
    let full = std::any::type_name::<T>();
    for word in full.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_' && c != ':') {
        name.push_str(word.rsplit("::").next().unwrap_or(word));
    }
    name
}
