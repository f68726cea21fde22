//! A record whose type is a [`Model`], read and written like derived code.
//!
//! Each part of a record has a distinct Rust type, because a trace distinguishes parts by type.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;

use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Error as _, IgnoredAny, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde::ser::{SerializeStruct, SerializeTuple, Serializer};
use serde::{Deserialize, Serialize};

use crate::model::{Field, Leaf, Model, Struct, Type, Value, Variant};

thread_local! {
    static MODEL: RefCell<Rc<Model>> = RefCell::new(Rc::new(Model { types: Vec::new() }));
    /// Interned lists of names, because serde requires static names.
    static NAMES: RefCell<HashMap<Vec<&'static str>, &'static [&'static str]>> = RefCell::default();
}

/// Runs `work` in a program whose record type is `model`.
pub fn with<T>(model: &Rc<Model>, work: impl FnOnce() -> T) -> T {
    let before = MODEL.replace(Rc::clone(model));
    let result = work();
    MODEL.replace(before);
    result
}

pub fn model() -> Rc<Model> {
    MODEL.with_borrow(Rc::clone)
}

fn names(all: Vec<&'static str>) -> &'static [&'static str] {
    NAMES.with_borrow_mut(|names| {
        *names.entry(all.clone()).or_insert_with(|| Box::leak(all.into_boxed_slice()))
    })
}

/// The part number `N` of the record; the record is part 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Part<const N: usize>(pub Value);

/// Calls a generic function with the type of a part.
macro_rules! of_part {
    ($of:expr, |$part:ident| $work:expr) => {
        of_part!(@ $of, $part, $work,
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23)
    };
    (@ $of:expr, $part:ident, $work:expr, $($n:literal)+) => {
        match $of {
            $($n => {
                type $part = Part<$n>;
                $work
            })+
            n => panic!("a model has at most 24 types, not {n}"),
        }
    };
}

fn inside<'de, D: Deserializer<'de>>(of: usize, input: D) -> Result<Value, D::Error> {
    of_part!(of, |P| P::deserialize(input).map(|part| part.0))
}

fn element<'de, A: SeqAccess<'de>>(of: usize, input: &mut A) -> Result<Option<Value>, A::Error> {
    of_part!(of, |P| Ok(input.next_element::<P>()?.map(|part| part.0)))
}

fn entry<'de, A: MapAccess<'de>>(of: usize, input: &mut A) -> Result<Value, A::Error> {
    of_part!(of, |P| input.next_value::<P>().map(|part| part.0))
}

fn content<'de, A: VariantAccess<'de>>(of: usize, input: A) -> Result<Value, A::Error> {
    of_part!(of, |P| input.newtype_variant::<P>().map(|part| part.0))
}

impl<'de, const N: usize> Deserialize<'de> for Part<N> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        fn integer<'de, I: Deserialize<'de> + Into<i128>, D: Deserializer<'de>>(
            input: D,
        ) -> Result<Value, D::Error> {
            I::deserialize(input).map(|n| Value::Integer(n.into()))
        }
        let model = model();
        let value = match &model.types[N] {
            Type::Leaf(Leaf::Bool) => bool::deserialize(input).map(Value::Bool)?,
            Type::Leaf(Leaf::U8) => integer::<u8, _>(input)?,
            Type::Leaf(Leaf::U16) => integer::<u16, _>(input)?,
            Type::Leaf(Leaf::U32) => integer::<u32, _>(input)?,
            Type::Leaf(Leaf::U64) => integer::<u64, _>(input)?,
            Type::Leaf(Leaf::I8) => integer::<i8, _>(input)?,
            Type::Leaf(Leaf::I16) => integer::<i16, _>(input)?,
            Type::Leaf(Leaf::I32) => integer::<i32, _>(input)?,
            Type::Leaf(Leaf::I64) => integer::<i64, _>(input)?,
            Type::Leaf(Leaf::F64) => f64::deserialize(input).map(Value::Float)?,
            Type::Leaf(Leaf::Text) => String::deserialize(input).map(Value::Text)?,
            Type::Leaf(Leaf::Unit) => <()>::deserialize(input).map(|()| Value::Unit)?,
            Type::Option(of) => input.deserialize_option(Of(*of, PhantomData::<OptionKind>))?,
            Type::List(of) => input.deserialize_seq(Of(*of, PhantomData::<ListKind>))?,
            Type::Newtype(of) => {
                input.deserialize_newtype_struct("Newtype", Of(*of, PhantomData::<NewtypeKind>))?
            }
            Type::Tuple(parts) => input.deserialize_tuple(parts.len(), TupleVisitor(parts))?,
            Type::Struct(of) => {
                let all = of.fields.iter().flat_map(sorted_names).collect();
                input.deserialize_struct("Struct", names(all), StructVisitor(&model, of))?
            }
            Type::Enum(variants) => {
                let all = variants.iter().flat_map(sorted_variant_names).collect();
                input.deserialize_enum("Enum", names(all), EnumVisitor(variants))?
            }
        };
        Ok(Self(value))
    }
}

/// The names of a field, in the order that derived code uses.
fn sorted_names(field: &Field) -> Vec<&'static str> {
    sorted(field.name, field.alias)
}

fn sorted_variant_names(variant: &Variant) -> Vec<&'static str> {
    sorted(variant.name, variant.alias)
}

fn sorted(name: &'static str, alias: Option<&'static str>) -> Vec<&'static str> {
    let mut names: Vec<_> = [name].into_iter().chain(alias).collect();
    names.sort_unstable();
    names
}

struct OptionKind;
struct ListKind;
struct NewtypeKind;

/// A visitor of a type around part number `.0`.
struct Of<Kind>(usize, PhantomData<Kind>);

impl<'de> Visitor<'de> for Of<OptionKind> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an option")
    }

    fn visit_none<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::None)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::None)
    }

    fn visit_some<D: Deserializer<'de>>(self, input: D) -> Result<Value, D::Error> {
        Ok(Value::Some(Box::new(inside(self.0, input)?)))
    }
}

impl<'de> Visitor<'de> for Of<ListKind> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut input: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = element(self.0, &mut input)? {
            all.push(one);
        }
        Ok(Value::List(all))
    }
}

impl<'de> Visitor<'de> for Of<NewtypeKind> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a newtype")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, input: D) -> Result<Value, D::Error> {
        inside(self.0, input)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut input: A) -> Result<Value, A::Error> {
        element(self.0, &mut input)?.ok_or_else(|| A::Error::invalid_length(0, &self))
    }
}

struct TupleVisitor<'m>(&'m [usize]);

impl<'de> Visitor<'de> for TupleVisitor<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tuple")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut input: A) -> Result<Value, A::Error> {
        let one = |(at, of): (usize, &usize)| {
            element(*of, &mut input)?.ok_or_else(|| A::Error::invalid_length(at, &"a tuple"))
        };
        self.0.iter().enumerate().map(one).collect::<Result<_, _>>().map(Value::List)
    }
}

struct StructVisitor<'m>(&'m Model, &'m Struct);

impl<'de> Visitor<'de> for StructVisitor<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a struct")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut input: A) -> Result<Value, A::Error> {
        let Self(model, Struct { fields, .. }) = self;
        let mut all = Vec::new();
        for (at, field) in fields.iter().enumerate() {
            let value = match element(field.of, &mut input)? {
                Some(value) => value,
                None if field.has_default => model.default_of(field.of),
                None => return Err(A::Error::invalid_length(at, &"a struct")),
            };
            all.push((field.name, value));
        }
        Ok(Value::Struct(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut input: A) -> Result<Value, A::Error> {
        let Self(model, Struct { fields, is_strict }) = self;
        let mut found: Vec<Option<Value>> = vec![None; fields.len()];
        let known: Vec<_> = fields.iter().map(sorted_names).collect();
        while let Some(place) = input.next_key_seed(Identifier(&known))? {
            match place {
                Ok(at) if found[at].is_some() => {
                    return Err(A::Error::duplicate_field(fields[at].name));
                }
                Ok(at) => found[at] = Some(entry(fields[at].of, &mut input)?),
                Err(name) if *is_strict => return Err(A::Error::unknown_field(&name, &[])),
                Err(_) => drop(input.next_value::<IgnoredAny>()?),
            }
        }
        let one = |(field, value): (&Field, Option<Value>)| match value {
            Some(value) => Ok((field.name, value)),
            None if model.is_optional(field) => Ok((field.name, model.default_of(field.of))),
            None => Err(A::Error::missing_field(field.name)),
        };
        fields.iter().zip(found).map(one).collect::<Result<_, _>>().map(Value::Struct)
    }
}

/// The index of a name or a number among lists of names, or the unknown name.
struct Identifier<'n>(&'n [Vec<&'static str>]);

impl<'de> DeserializeSeed<'de> for Identifier<'_> {
    type Value = Result<usize, String>;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Self::Value, D::Error> {
        input.deserialize_identifier(self)
    }
}

impl<'de> Visitor<'de> for Identifier<'_> {
    type Value = Result<usize, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_u64<E: de::Error>(self, n: u64) -> Result<Self::Value, E> {
        let at = usize::try_from(n).unwrap_or(usize::MAX);
        Ok(if at < self.0.len() { Ok(at) } else { Err(n.to_string()) })
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|names| names.contains(&name)).ok_or_else(|| name.to_owned()))
    }
}

struct EnumVisitor<'m>(&'m [Variant]);

impl<'de> Visitor<'de> for EnumVisitor<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an enum")
    }

    fn visit_enum<A: EnumAccess<'de>>(self, input: A) -> Result<Value, A::Error> {
        let known: Vec<_> = self.0.iter().map(sorted_variant_names).collect();
        let (place, input) = input.variant_seed(Chosen(&known))?;
        let one = &self.0[place as usize];
        let content = match one.of {
            None => {
                input.unit_variant()?;
                None
            }
            Some(of) => Some(Box::new(content(of, input)?)),
        };
        Ok(Value::Variant(one.name, content))
    }
}

/// Like [`Identifier`], for an enum in derived code.
struct Chosen<'n>(&'n [Vec<&'static str>]);

/// One variant for each index.
#[repr(u8)]
#[derive(Clone, Copy)]
enum Place {
    A,
    B,
    C,
    D,
    E,
    F,
    G,
    H,
    I,
    J,
}

const PLACES: [Place; 10] = [
    Place::A,
    Place::B,
    Place::C,
    Place::D,
    Place::E,
    Place::F,
    Place::G,
    Place::H,
    Place::I,
    Place::J,
];

impl<'de> DeserializeSeed<'de> for Chosen<'_> {
    type Value = Place;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Self::Value, D::Error> {
        let place = Identifier(self.0).deserialize(input)?;
        let place = place.map_err(|name| D::Error::unknown_variant(&name, &[]))?;
        Ok(PLACES[place])
    }
}

impl<const N: usize> Serialize for Part<N> {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        let model = model();
        Written { model: &model, of: N, value: &self.0 }.serialize(output)
    }
}

/// A value, serialized as its type prescribes.
struct Written<'m> {
    model: &'m Model,
    of: usize,
    value: &'m Value,
}

impl<'m> Written<'m> {
    fn part(&self, of: usize, value: &'m Value) -> Self {
        Self { model: self.model, of, value }
    }
}

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        match (&self.model.types[self.of], self.value) {
            (Type::Leaf(leaf), value) => write_leaf(*leaf, value, output),
            (Type::Option(_), Value::None) => output.serialize_none(),
            (Type::Option(of), Value::Some(value)) => output.serialize_some(&self.part(*of, value)),
            (Type::List(of), Value::List(all)) => {
                output.collect_seq(all.iter().map(|one| self.part(*of, one)))
            }
            (Type::Tuple(parts), Value::List(all)) => {
                let mut tuple = output.serialize_tuple(parts.len())?;
                for (of, one) in parts.iter().zip(all) {
                    tuple.serialize_element(&self.part(*of, one))?;
                }
                tuple.end()
            }
            (Type::Newtype(of), value) => {
                output.serialize_newtype_struct("Newtype", &self.part(*of, value))
            }
            (Type::Struct(Struct { fields, .. }), Value::Struct(all)) => {
                let mut written = output.serialize_struct("Struct", fields.len())?;
                for (field, (_, value)) in fields.iter().zip(all) {
                    written.serialize_field(field.name, &self.part(field.of, value))?;
                }
                written.end()
            }
            (Type::Enum(variants), Value::Variant(name, content)) => {
                let place = variants.iter().position(|one| one.name == *name).unwrap();
                let number = u32::try_from(place).unwrap();
                match (variants[place].of, content) {
                    (Some(of), Some(content)) => output.serialize_newtype_variant(
                        "Enum",
                        number,
                        name,
                        &self.part(of, content),
                    ),
                    _ => output.serialize_unit_variant("Enum", number, name),
                }
            }
            (of, value) => panic!("{value:?} is no {of:?}"),
        }
    }
}

fn write_leaf<S: Serializer>(leaf: Leaf, value: &Value, output: S) -> Result<S::Ok, S::Error> {
    match (leaf, value) {
        (Leaf::Bool, Value::Bool(is)) => output.serialize_bool(*is),
        (Leaf::F64, Value::Float(x)) => output.serialize_f64(*x),
        (Leaf::Text, Value::Text(text)) => output.serialize_str(text),
        (Leaf::Unit, Value::Unit) => output.serialize_unit(),
        (Leaf::U8, Value::Integer(n)) => output.serialize_u8(*n as u8),
        (Leaf::U16, Value::Integer(n)) => output.serialize_u16(*n as u16),
        (Leaf::U32, Value::Integer(n)) => output.serialize_u32(*n as u32),
        (Leaf::U64, Value::Integer(n)) => output.serialize_u64(*n as u64),
        (Leaf::I8, Value::Integer(n)) => output.serialize_i8(*n as i8),
        (Leaf::I16, Value::Integer(n)) => output.serialize_i16(*n as i16),
        (Leaf::I32, Value::Integer(n)) => output.serialize_i32(*n as i32),
        (Leaf::I64, Value::Integer(n)) => output.serialize_i64(*n as i64),
        (leaf, value) => panic!("{value:?} is no {leaf:?}"),
    }
}
