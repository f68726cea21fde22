//! Parts of derived data: fields, descending fields, elements of a field.

use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Field, Ident, Path, Result, Token, Type, parenthesized, parse_quote};

use super::types;

/// A part as written in the attribute: `opened`, `desc(opened)`, `each(tags)`, `integer(cents)`.
pub(super) struct WrittenPart {
    pub(super) field: Ident,
    pub(super) is_desc: bool,
    pub(super) is_each: bool,
    pub(super) is_integer: bool,
}

/// How a part is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    Desc,
    Each,
    Integer,
}

/// A part with its field.
pub(super) struct Part {
    pub(super) field: Ident,
    /// The type of the field, or of its elements.
    pub(super) ty: Type,
    pub(super) is_desc: bool,
    pub(super) is_each: bool,
    pub(super) is_integer: bool,
}

impl WrittenPart {
    pub(super) fn plain(field: Ident) -> Self {
        Self { field, is_desc: false, is_each: false, is_integer: false }
    }

    pub(super) fn forms(&self) -> impl Iterator<Item = Form> {
        let forms = [
            (self.is_desc, Form::Desc),
            (self.is_each, Form::Each),
            (self.is_integer, Form::Integer),
        ];
        forms.into_iter().filter_map(|(is, form)| is.then_some(form)).chain([Form::Plain])
    }
}

impl Parse for WrittenPart {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.call(Ident::parse_any)?;
        if !input.peek(syn::token::Paren) {
            return Ok(Self::plain(name));
        }
        let content;
        parenthesized!(content in input);
        let mut part: Self = content.parse()?;
        if !content.is_empty() {
            return Err(content.error("one field at a time: `desc(a), desc(b)`"));
        }
        let form = match name.to_string().as_str() {
            "desc" => &mut part.is_desc,
            "each" => &mut part.is_each,
            "integer" => &mut part.is_integer,
            _ => {
                let message = format!(
                    "unknown form `{name}` of a part; a part is `field`, `desc(field)`, \
                     `each(field)` or, of an inverted index, `integer(field)`"
                );
                return Err(Error::new(name.span(), message));
            }
        };
        match std::mem::replace(form, true) {
            false => Ok(part),
            true => Err(Error::new(name.span(), format!("`{name}` twice; remove one"))),
        }
    }
}

/// Reads `field` or `(field, desc(field))`.
pub(super) fn parse_parts(input: ParseStream<'_>) -> Result<Vec<WrittenPart>> {
    if !input.peek(syn::token::Paren) {
        return Ok(vec![input.parse()?]);
    }
    let content;
    let parens = parenthesized!(content in input);
    let parts = Punctuated::<WrittenPart, Token![,]>::parse_terminated(&content)?;
    match parts.len() {
        0..=12 => Ok(parts.into_iter().collect()),
        _ => {
            let message = "at most 12 parts; put several of the fields into a struct that derives \
                           `Key`";
            Err(Error::new(parens.span.join(), message))
        }
    }
}

/// Refuses a second `each`: entries are made per element of one collection, not per pair of
/// elements of two.
pub(super) fn refuse_second_each(written: &[WrittenPart]) -> Result<()> {
    match written.iter().filter(|part| part.is_each).nth(1) {
        None => Ok(()),
        Some(second) => Err(Error::new(
            second.field.span(),
            "an index has one `each`; index the other collection separately",
        )),
    }
}

/// Finds the fields of the parts.
pub(super) fn resolve<'f>(
    written: Vec<WrittenPart>,
    find: impl Fn(&Ident) -> Result<&'f Field>,
) -> Result<Vec<Part>> {
    let resolve = |WrittenPart { field: name, is_desc, is_each, is_integer }: WrittenPart| {
        let field = find(&name)?;
        let ty = if is_each { types::element(&field.ty)? } else { types::single(&field.ty)? };
        let field = field.ident.clone().unwrap_or(name);
        Ok(Part { field, ty, is_desc, is_each, is_integer })
    };
    written.into_iter().map(resolve).collect()
}

/// The type of the parts.
pub(super) fn parts_type(parts: &[Part], support: &Path) -> Type {
    let types = parts.iter().map(|Part { ty, is_desc, .. }| -> Type {
        if *is_desc { parse_quote!(#support::Desc<#ty>) } else { ty.clone() }
    });
    let types: Vec<Type> = types.collect();
    match types.as_slice() {
        [one] => one.clone(),
        all => parse_quote!((#(#all),*)),
    }
}
