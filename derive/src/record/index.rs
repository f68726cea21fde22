//! The attributes that declare an index or other derived data.

use proc_macro2::Span;
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, Field, Ident, LitStr, Meta, Path, Result, Token, Type, parse_quote,
};

use super::parts::{Part, WrittenPart, parse_parts};
use crate::options::{parse_options, set, set_flag, value, version};

/// An index before its fields are found.
pub(super) struct WrittenIndex {
    pub(super) name: Ident,
    pub(super) parts: Vec<WrittenPart>,
    pub(super) options: IndexOptions,
}

pub(super) struct Index {
    pub(super) name: Ident,
    pub(super) parts: Vec<Part>,
    pub(super) version: u32,
    pub(super) when: Option<Expr>,
    pub(super) is_unique: bool,
}

/// Derived data of another kind, from a function of the user.
pub(super) struct Derived {
    pub(super) name: Ident,
    pub(super) ty: Type,
    pub(super) make: Expr,
    pub(super) version: u32,
}

#[derive(Default)]
pub(super) struct IndexOptions {
    pub(super) version: Option<u32>,
    pub(super) when: Option<Expr>,
    /// Where `unique` is, if it is.
    pub(super) unique: Option<Span>,
}

impl IndexOptions {
    fn parse(&mut self, name: &Ident, input: ParseStream<'_>) -> Result<()> {
        match name.to_string().as_str() {
            "version" => set(&mut self.version, name, version(input, u32::MAX)?),
            "when" => set(&mut self.when, name, value(input)?),
            _ => set(&mut self.unique, name, name.span()),
        }
    }
}

/// Reads `by_status = (status, desc(opened)), version = 2`.
pub(super) fn parse_index(input: ParseStream<'_>) -> Result<WrittenIndex> {
    if !(input.peek(Ident) && input.peek2(Token![=])) {
        return Err(
            input.error("begin with the name and the parts: `by_status = (status, opened)`")
        );
    }
    let name: Ident = input.parse()?;
    input.parse::<Token![=]>()?;
    let parts = parse_parts(input)?;
    let mut options = IndexOptions::default();
    if !input.is_empty() {
        input.parse::<Token![,]>()?;
    }
    parse_options(input, &["unique", "version", "when"], |name, input| options.parse(name, input))?;
    refuse_unique_each(&parts, &options)?;
    Ok(WrittenIndex { name, parts, options })
}

/// Reads `#[index(..)]` or `#[unique(..)]` of a field.
pub(super) fn parse_field_index(attr: &Attribute, field: &Field) -> Result<WrittenIndex> {
    let Some(ident) = &field.ident else {
        return Err(Error::new(field.span(), "an indexed field has a name"));
    };
    let mut index = FieldIndex::default();
    if attr.path().is_ident("unique") {
        index.options.unique = Some(attr.path().span());
    }
    if !matches!(attr.meta, Meta::Path(_)) {
        attr.parse_args_with(|input: ParseStream<'_>| index.parse(input))?;
    }
    let FieldIndex { name, is_desc, is_each, options } = index;
    let name = match name {
        Some(literal) => parse_name(&literal)?,
        None => Ident::new(&format!("by_{}", unraw(ident)), ident.span()),
    };
    let parts = vec![WrittenPart { field: ident.clone(), is_desc, is_each }];
    refuse_unique_each(&parts, &options)?;
    Ok(WrittenIndex { name, parts, options })
}

fn unraw(ident: &Ident) -> Ident {
    syn::ext::IdentExt::unraw(ident)
}

#[derive(Default)]
struct FieldIndex {
    name: Option<LitStr>,
    is_desc: bool,
    is_each: bool,
    options: IndexOptions,
}

impl FieldIndex {
    fn parse(&mut self, input: ParseStream<'_>) -> Result<()> {
        let known = ["desc", "each", "name", "unique", "version", "when"];
        parse_options(input, &known, |name, input| match name.to_string().as_str() {
            "desc" => set_flag(&mut self.is_desc, name),
            "each" => set_flag(&mut self.is_each, name),
            "name" => set(&mut self.name, name, value(input)?),
            _ => self.options.parse(name, input),
        })
    }
}

fn parse_name(literal: &LitStr) -> Result<Ident> {
    literal.parse().map_err(|_| {
        let message = format!(
            "the index `{}` becomes a field and a method, so its name must be an identifier such \
             as `by_status`",
            literal.value()
        );
        Error::new(literal.span(), message)
    })
}

fn refuse_unique_each(parts: &[WrittenPart], options: &IndexOptions) -> Result<()> {
    match options.unique {
        Some(unique) if parts.iter().any(|part| part.is_each) => Err(Error::new(
            unique,
            "a unique index has one entry for each record, and `each` makes several; remove one of \
             them",
        )),
        _ => Ok(()),
    }
}

/// Reads `near: PointIndex<u64, City> = near_index, version = 2`.
pub(super) fn parse_derived(input: ParseStream<'_>) -> Result<Derived> {
    if !(input.peek(Ident) && input.peek2(Token![:])) {
        return Err(input.error(
            "begin with the name, the type and the function: `near: PointIndex<u64, City> = \
             near_index`",
        ));
    }
    let name: Ident = input.parse()?;
    input.parse::<Token![:]>()?;
    let ty: Type = input.parse()?;
    let make: Expr = value(input)?;
    if !input.is_empty() {
        input.parse::<Token![,]>()?;
    }
    let mut given = None;
    parse_options(input, &["version"], |name, input| {
        set(&mut given, name, version(input, u32::MAX)?)
    })?;
    Ok(Derived { name, ty, make, version: given.unwrap_or(1) })
}

impl Index {
    /// The type of the parts.
    pub(super) fn parts_type(&self, support: &Path) -> Type {
        let types = self.parts.iter().map(|Part { ty, is_desc, .. }| -> Type {
            if *is_desc { parse_quote!(#support::Desc<#ty>) } else { ty.clone() }
        });
        let types: Vec<Type> = types.collect();
        match types.as_slice() {
            [one] => one.clone(),
            all => parse_quote!((#(#all),*)),
        }
    }
}
