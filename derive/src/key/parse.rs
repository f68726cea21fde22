//! The type of a key and the numbers of its variants.

use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, ExprLit, ExprUnary, Fields, Ident, Lit, LitInt,
    Path, Result, Token, UnOp,
};

use crate::errors::Errors;
use crate::options::{crate_path, default_crate, parse_options, refuse_generics, set};

pub(super) struct ParsedKey<'i> {
    pub(super) ident: Ident,
    pub(super) layout: Layout<'i>,
    patterns: Path,
}

pub(super) enum Layout<'i> {
    Struct(&'i Fields),
    Enum(Vec<Variant<'i>>),
}

pub(super) struct Variant<'i> {
    pub(super) ident: &'i Ident,
    pub(super) number: u32,
    pub(super) fields: &'i Fields,
}

impl ParsedKey<'_> {
    pub(super) fn support(&self) -> Path {
        let patterns = &self.patterns;
        syn::parse_quote!(#patterns::derive_support)
    }

    /// Whether the type is packed as one element, alone and nested: an enum without fields.
    pub(super) fn is_one_element(&self) -> bool {
        match &self.layout {
            Layout::Struct(_) => false,
            Layout::Enum(variants) => variants.iter().all(|variant| variant.fields.is_empty()),
        }
    }
}

pub(super) fn parse(input: &DeriveInput) -> Result<ParsedKey<'_>> {
    let mut errors = Errors::default();
    let patterns = errors.keep(options(&input.attrs)).unwrap_or_else(default_crate);
    errors.keep(refuse_generics(&input.generics, "a key"));
    let layout = match &input.data {
        Data::Struct(data) => {
            refuse_attributes_of_fields(&data.fields, &mut errors);
            if data.fields.is_empty() {
                errors
                    .push(Error::new(input.ident.span(), "a key has at least one field; add one"));
            }
            Layout::Struct(&data.fields)
        }
        Data::Enum(data) => {
            if data.variants.is_empty() {
                let message = "a key has at least one variant; add one";
                errors.push(Error::new(input.ident.span(), message));
            }
            Layout::Enum(variants(&data.variants, &mut errors))
        }
        Data::Union(data) => {
            let message = "`Key` is for structs and enums; a union has no layout of its own";
            return Err(Error::new(data.union_token.span, message));
        }
    };
    errors.finish()?;
    Ok(ParsedKey { ident: input.ident.clone(), layout, patterns })
}

fn of_key(attrs: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attrs.iter().filter(|attr| attr.path().is_ident("key"))
}

fn options(attrs: &[Attribute]) -> Result<Path> {
    let mut patterns = None;
    for attr in of_key(attrs) {
        attr.parse_args_with(|input: syn::parse::ParseStream<'_>| {
            parse_options(input, &["crate"], |name, input| {
                set(&mut patterns, name, crate_path(input)?)
            })
        })?;
    }
    Ok(patterns.unwrap_or_else(default_crate))
}

fn refuse_attributes_of_fields(fields: &Fields, errors: &mut Errors) {
    for attr in fields.iter().flat_map(|field| of_key(&field.attrs)) {
        let message = "`key` numbers the variants of an enum; a field has no number, remove it";
        errors.push(Error::new(attr.span(), message));
    }
}

fn variants<'i>(
    variants: &'i Punctuated<syn::Variant, Token![,]>,
    errors: &mut Errors,
) -> Vec<Variant<'i>> {
    let numbered = variants.iter().filter_map(|variant| {
        refuse_attributes_of_fields(&variant.fields, errors);
        Some((variant, errors.keep(number_of(variant))?))
    });
    let numbered: Vec<_> = numbered.collect();
    refuse_disorder(&numbered, errors);
    refuse_discriminants(variants, errors);
    let variant = |(variant, number): (&'i syn::Variant, u32)| Variant {
        ident: &variant.ident,
        number,
        fields: &variant.fields,
    };
    numbered.into_iter().map(variant).collect()
}

/// The number of a variant. Its position is not used: numbers are stored, so two variants that swap
/// positions would be read as each other.
fn number_of(variant: &syn::Variant) -> Result<u32> {
    let mut attrs = of_key(&variant.attrs);
    let Some(attr) = attrs.next() else {
        let message = "number each variant, as `#[key(0)]`: the numbers are in the store, so the \
                       order of the variants must not decide them";
        return Err(Error::new(variant.ident.span(), message));
    };
    if let Some(second) = attrs.next() {
        return Err(Error::new(second.span(), "the variant has a number; remove this one"));
    }
    let wrong = |span| {
        let message = "the number of a variant is an integer from 0 to 4294967295: `#[key(0)]`";
        Error::new(span, message)
    };
    let literal: LitInt = attr.parse_args().map_err(|error| wrong(error.span()))?;
    literal.base10_parse().map_err(|_| wrong(literal.span()))
}

/// Refuses equal numbers and numbers that do not ascend: keys sort by number, but the derived `Ord`
/// sorts by position.
fn refuse_disorder(numbered: &[(&syn::Variant, u32)], errors: &mut Errors) {
    for (at, (variant, number)) in numbered.iter().enumerate() {
        let before = numbered.get(..at).unwrap_or_default();
        let span = of_key(&variant.attrs).next().map_or(variant.span(), Spanned::span);
        if let Some((other, _)) = before.iter().find(|(_, other)| other == number) {
            let message = format!(
                "`{}` has the number {number} already; give this variant another one",
                other.ident
            );
            errors.push(Error::new(span, message));
        } else if let Some((other, greater)) = before.iter().find(|(_, other)| other > number) {
            let message = format!(
                "keys are sorted by number, and the derived `Ord` by position: move this variant \
                 before `{}`, which has the number {greater}",
                other.ident
            );
            errors.push(Error::new(span, message));
        }
    }
}

/// Refuses discriminants that do not ascend: the derived `Ord` compares them.
fn refuse_discriminants(variants: &Punctuated<syn::Variant, Token![,]>, errors: &mut Errors) {
    let mut before: Option<i128> = None;
    for variant in variants {
        let implicit = before.map_or(0, |before| before.saturating_add(1));
        let Some((_, expr)) = &variant.discriminant else {
            before = Some(implicit);
            continue;
        };
        match literal(expr) {
            Some(value) if before.is_none_or(|before| before < value) => before = Some(value),
            Some(_) => errors.push(Error::new(
                expr.span(),
                "the derived `Ord` compares discriminants: sort the variants by them",
            )),
            None => errors.push(Error::new(
                expr.span(),
                "write the discriminant as an integer literal, so that its order can be checked",
            )),
        }
    }
}

fn literal(expr: &Expr) -> Option<i128> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Int(int), .. }) => int.base10_parse().ok(),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => literal(expr)?.checked_neg(),
        _ => None,
    }
}
