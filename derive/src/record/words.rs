//! The attributes that declare derived data.

use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, Field, Ident, LitStr, Meta, Result, Token, Type, parenthesized};

use super::derived::{Derived, Kind, Options, Word, Written};
use super::parts::{WrittenPart, parse_parts};
use crate::options::{parse_options, set, set_flag, value, version};

impl Options {
    fn parse(&mut self, name: &Ident, input: ParseStream<'_>) -> Result<()> {
        match name.to_string().as_str() {
            "version" => set(&mut self.version, name, version(input, u32::MAX)?),
            "when" => set(&mut self.when, name, value(input)?),
            "of" => set(&mut self.of, name, value(input)?),
            "analyzer" => set(&mut self.analyzer, name, value(input)?),
            "filters" => {
                input.parse::<Token![=]>()?;
                set(&mut self.filters, name, parse_parts(input)?)
            }
            "covering" => set(&mut self.covering, name, parse_fields(input)?),
            "deferred" => set(&mut self.deferred, name, name.span()),
            "keys_as_ids" => set(&mut self.keys_as_ids, name, name.span()),
            _ => set(&mut self.unique, name, name.span()),
        }
    }
}

/// Reads `= field` or `= (field, field)`.
fn parse_fields(input: ParseStream<'_>) -> Result<Vec<Ident>> {
    input.parse::<Token![=]>()?;
    if !input.peek(syn::token::Paren) {
        return Ok(vec![input.call(Ident::parse_any)?]);
    }
    let content;
    parenthesized!(content in input);
    let fields = Punctuated::<Ident, Token![,]>::parse_terminated_with(&content, Ident::parse_any)?;
    Ok(fields.into_iter().collect())
}

/// Reads `by_status = (status, desc(opened)), version = 2`.
pub(super) fn parse_word(word: Word, input: ParseStream<'_>) -> Result<Written> {
    if !(input.peek(Ident) && input.peek2(Token![=])) {
        let message = format!("begin with the name and the parts: `{}`", word.example());
        return Err(input.error(message));
    }
    let name: Ident = input.parse()?;
    input.parse::<Token![=]>()?;
    let parts = parse_parts(input)?;
    let mut options = Options::default();
    if !input.is_empty() {
        input.parse::<Token![,]>()?;
    }
    parse_options(input, word.options(), |name, input| options.parse(name, input))?;
    Ok(Written { word, name, parts, options })
}

/// Reads `#[index(..)]` or `#[unique(..)]` of a field.
pub(super) fn parse_field_index(attr: &Attribute, field: &Field) -> Result<Written> {
    let Some(ident) = &field.ident else {
        return Err(Error::new(field.span(), "an indexed field has a name"));
    };
    let mut index = FieldIndex {
        name: None,
        part: WrittenPart::plain(ident.clone()),
        options: Options::default(),
    };
    if attr.path().is_ident("unique") {
        index.options.unique = Some(attr.path().span());
    }
    if !matches!(attr.meta, Meta::Path(_)) {
        attr.parse_args_with(|input: ParseStream<'_>| index.parse(input))?;
    }
    let FieldIndex { name, part, options } = index;
    let name = match name {
        Some(literal) => parse_name(&literal)?,
        None => Ident::new(&format!("by_{}", ident.unraw()), ident.span()),
    };
    Ok(Written { word: Word::Index, name, parts: vec![part], options })
}

struct FieldIndex {
    name: Option<LitStr>,
    part: WrittenPart,
    options: Options,
}

impl FieldIndex {
    fn parse(&mut self, input: ParseStream<'_>) -> Result<()> {
        let known = [&["desc", "each", "name"], Word::Index.options()].concat();
        parse_options(input, &known, |name, input| match name.to_string().as_str() {
            "desc" => set_flag(&mut self.part.is_desc, name),
            "each" => set_flag(&mut self.part.is_each, name),
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
    let ty = Box::new(input.parse::<Type>()?);
    let make = Box::new(value::<Expr>(input)?);
    if !input.is_empty() {
        input.parse::<Token![,]>()?;
    }
    let mut options = Options::default();
    parse_options(input, &["deferred", "version"], |name, input| options.parse(name, input))?;
    let (version, is_deferred) = (options.version.unwrap_or(1), options.deferred.is_some());
    Ok(Derived { name, version, when: None, is_deferred, kind: Kind::Other { ty, make } })
}
