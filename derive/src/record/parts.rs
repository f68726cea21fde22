//! Parts of an index: fields, descending fields, elements of a field.

use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Field, Ident, Result, Token, Type, parenthesized};

use super::types;

/// A part as it is written: `opened`, `desc(opened)`, `each(tags)`.
pub(super) struct WrittenPart {
    pub(super) field: Ident,
    pub(super) is_desc: bool,
    pub(super) is_each: bool,
}

/// A part of an index.
pub(super) struct Part {
    pub(super) field: Ident,
    /// The type of the field, or of its elements.
    pub(super) ty: Type,
    pub(super) is_desc: bool,
    pub(super) is_each: bool,
}

impl Parse for WrittenPart {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = input.call(Ident::parse_any)?;
        if !input.peek(syn::token::Paren) {
            return Ok(Self { field: name, is_desc: false, is_each: false });
        }
        let content;
        parenthesized!(content in input);
        let inner: Self = content.parse()?;
        if !content.is_empty() {
            return Err(content.error("one field at a time: `desc(a), desc(b)`"));
        }
        match name.to_string().as_str() {
            "desc" if !inner.is_desc => Ok(Self { is_desc: true, ..inner }),
            "each" if !inner.is_each => Ok(Self { is_each: true, ..inner }),
            "desc" | "each" => Err(Error::new(name.span(), format!("`{name}` twice; remove one"))),
            _ => {
                let message = format!(
                    "unknown form `{name}` of a part; a part is `field`, `desc(field)` or \
                     `each(field)`"
                );
                Err(Error::new(name.span(), message))
            }
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
        0 => Err(Error::new(parens.span.join(), "an index has at least one part; name a field")),
        1..=12 => Ok(parts.into_iter().collect()),
        _ => {
            let message = "an index has at most 12 parts; put several of the fields into a struct \
                           that derives `Key`";
            Err(Error::new(parens.span.join(), message))
        }
    }
}

/// Finds the fields of the parts.
pub(super) fn resolve<'f>(
    written: Vec<WrittenPart>,
    find: impl Fn(&Ident) -> Result<&'f Field>,
) -> Result<Vec<Part>> {
    if let Some(second) = written.iter().filter(|part| part.is_each).nth(1) {
        let message = "an index has one `each`; index the other collection separately";
        return Err(Error::new(second.field.span(), message));
    }
    let resolve = |WrittenPart { field: name, is_desc, is_each }: WrittenPart| {
        let field = find(&name)?;
        let ty = if is_each { types::element(&field.ty)? } else { types::single(&field.ty)? };
        Ok(Part { field: field.ident.clone().unwrap_or(name), ty, is_desc, is_each })
    };
    written.into_iter().map(resolve).collect()
}
