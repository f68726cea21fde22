//! `#[derive(Record)]`.

mod codec;
mod declare;
mod derived;
mod expand;
mod parse;
mod parts;
mod reserved;
mod table;
mod types;
mod words;

use proc_macro2::TokenStream;
use syn::{DeriveInput, Result};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    Ok(expand::expand(&parse::parse(input)?))
}
