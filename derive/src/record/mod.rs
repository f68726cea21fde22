//! `#[derive(Record)]`.

mod expand;
mod index;
mod parse;
mod parts;
mod reserved;
mod table;
mod types;

use proc_macro2::TokenStream;
use syn::{DeriveInput, Result};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    Ok(expand::expand(&parse::parse(input)?))
}
