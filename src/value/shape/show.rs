//! Shapes as text.

use std::fmt;

use super::{Field, Fields, Form, Leaf, Shape, TypeId};

impl fmt::Display for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bool => "bool",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::I128 => "i128",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::U128 => "u128",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Char => "char",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Unit => "unit",
        })
    }
}

/// Shows structs and enums with their fields and variants. A type that occurs inside itself is
/// shown by its name.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown { shape: self, above: &mut Vec::new(), is_short: false }.show(0, f)
    }
}

impl Shape {
    /// A short form of a type: the name of a struct or an enum; other types in full.
    pub(super) fn short(&self, id: TypeId) -> String {
        struct Short<'a>(&'a Shape, TypeId);
        impl fmt::Display for Short<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                Shown { shape: self.0, above: &mut Vec::new(), is_short: true }.show(self.1, f)
            }
        }
        Short(self, id).to_string()
    }
}

/// The depth from which structs and enums are shown by their names.
const MOST_SHOWN: usize = 10;

struct Shown<'a> {
    shape: &'a Shape,
    above: &'a mut Vec<TypeId>,
    is_short: bool,
}

impl Shown<'_> {
    fn show(&mut self, id: TypeId, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = self.shape.at(id);
        let is_named = matches!(one.form, Form::Struct(_) | Form::Enum(_));
        let is_inside = self
            .above
            .iter()
            .any(|above| *above == id || is_named && self.shape.at(*above).name == one.name);
        // A type that occurs twice on each level would be shown 2^n times at depth n.
        let is_deep = self.above.len() >= MOST_SHOWN;
        if is_inside || (self.is_short || is_deep) && is_named {
            return f.write_str(&one.name);
        }
        self.above.push(id);
        let shown = self.form(id, f);
        self.above.pop();
        shown
    }

    fn form(&mut self, id: TypeId, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = self.shape;
        let one = shape.at(id);
        match &one.form {
            Form::Leaf(leaf) => fmt::Display::fmt(leaf, f),
            Form::Opaque(0) => f.write_str(&one.name),
            Form::Opaque(version) => write!(f, "{} of version {version}", one.name),
            Form::Option(of) => {
                f.write_str("optional ")?;
                self.show(*of, f)
            }
            Form::Sequence(of) => {
                f.write_str("list of ")?;
                self.show(*of, f)
            }
            Form::Array(of, len) => {
                write!(f, "array of {len} ")?;
                self.show(*of, f)
            }
            Form::Map(key, value) => {
                f.write_str("map from ")?;
                self.show(*key, f)?;
                f.write_str(" to ")?;
                self.show(*value, f)
            }
            Form::Tuple(parts) => {
                f.write_str("(")?;
                self.all(parts.iter().map(|of| ("", *of)), f)?;
                f.write_str(")")
            }
            Form::Struct(fields) => self.fields(&one.name, fields, f),
            Form::Enum(variants) => {
                write!(f, "{} {{", one.name)?;
                for (at, variant) in variants.iter().enumerate() {
                    f.write_str(if at > 0 { " | " } else { "" })?;
                    f.write_str(variant.names.first().map_or("", String::as_str))?;
                    if let Some(of) = variant.content {
                        f.write_str(" ")?;
                        self.show(of, f)?;
                    }
                }
                f.write_str("}")
            }
            Form::ByTag(contents) => {
                f.write_str("by tag {")?;
                self.all(contents.iter().map(|(tag, of)| (tag.as_str(), *of)), f)?;
                f.write_str("}")
            }
        }
    }

    fn fields(&mut self, name: &str, fields: &Fields, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{name} {{")?;
        let name = |field: &Field| {
            [&field.names[..], &field.aliases[..]].concat().join("|")
                + if field.is_optional { "?" } else { "" }
        };
        let names: Vec<_> = fields.fields.iter().map(name).collect();
        self.all(names.iter().map(String::as_str).zip(fields.fields.iter().map(|one| one.of)), f)?;
        f.write_str("}")
    }

    fn all<'n>(
        &mut self,
        parts: impl Iterator<Item = (&'n str, TypeId)>,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        for (at, (name, of)) in parts.enumerate() {
            f.write_str(if at > 0 { ", " } else { "" })?;
            if !name.is_empty() {
                write!(f, "{name}: ")?;
            }
            self.show(of, f)?;
        }
        Ok(())
    }
}
