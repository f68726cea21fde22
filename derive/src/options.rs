//! Options of an attribute: names, values and commas.

use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Error, Generics, Ident, LitInt, Path, Result, Token, parse_quote, token};

/// Calls `option` with the name of each option. An unknown name is an error that lists `known`.
pub(crate) fn parse_options(
    input: ParseStream<'_>,
    known: &[&str],
    mut option: impl FnMut(&Ident, ParseStream<'_>) -> Result<()>,
) -> Result<()> {
    while !input.is_empty() {
        let name = input.call(Ident::parse_any)?;
        if !known.iter().any(|known| name == known) {
            let (hint, known) = (hint(&name, input, known), known.join("`, `"));
            let message = format!("unknown option `{name}`{hint}; the options are `{known}`");
            return Err(Error::new(name.span(), message));
        }
        option(&name, input)?;
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(())
}

/// A hint at what the user probably meant by an unknown option; empty if there is no hint.
fn hint(name: &Ident, input: ParseStream<'_>, known: &[&str]) -> &'static str {
    let is_of_index = known.contains(&"when");
    match name.to_string().as_str() {
        "unique" if known.contains(&"index") => " (write `index(by_name = field, unique)`)",
        // As in `index(by_town = town, by_name = (name, town))`.
        _ if is_of_index
            && input.peek(Token![=])
            && (input.peek2(Ident) || input.peek2(token::Paren)) =>
        {
            " (a second index has an `index(…)` of its own)"
        }
        _ => "",
    }
}

/// Sets an option, which may occur only once.
pub(crate) fn set<T>(option: &mut Option<T>, name: &Ident, value: T) -> Result<()> {
    if option.is_some() {
        return Err(Error::new(name.span(), format!("`{name}` is given twice; remove one")));
    }
    *option = Some(value);
    Ok(())
}

/// Sets an option without a value.
pub(crate) fn set_flag(flag: &mut bool, name: &Ident) -> Result<()> {
    if *flag {
        return Err(Error::new(name.span(), format!("`{name}` is given twice; remove one")));
    }
    *flag = true;
    Ok(())
}

/// Reads `= value`.
pub(crate) fn value<T: syn::parse::Parse>(input: ParseStream<'_>) -> Result<T> {
    input.parse::<Token![=]>()?;
    input.parse()
}

/// Reads `= version`, from 1 to `max`.
pub(crate) fn version(input: ParseStream<'_>, max: u32) -> Result<u32> {
    let literal: LitInt = value(input)?;
    match literal.base10_parse::<u32>() {
        Ok(version) if (1..=max).contains(&version) => Ok(version),
        _ => {
            let message = format!("a version is a number from 1 to {max}; begin with 1");
            Err(Error::new(literal.span(), message))
        }
    }
}

/// Reads `= path` of the crate `keyloom_patterns`.
pub(crate) fn crate_path(input: ParseStream<'_>) -> Result<Path> {
    input.parse::<Token![=]>()?;
    input.call(Path::parse_mod_style)
}

pub(crate) fn default_crate() -> Path {
    parse_quote!(::keyloom_patterns)
}

/// Refuses type parameters and lifetimes.
pub(crate) fn refuse_generics(generics: &Generics, what: &str) -> Result<()> {
    if generics.params.is_empty() && generics.where_clause.is_none() {
        return Ok(());
    }
    let span = match generics.params.is_empty() {
        true => generics.where_clause.span(),
        false => generics.params.span(),
    };
    let message = format!(
        "{what} has no generic parameters, since the schema stores one name and one layout for it; \
         use concrete, owned types"
    );
    Err(Error::new(span, message))
}
