//! The types that the table of a record is made of.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Path, Type};

use super::parse::{Key, Record};

/// The type of the record key.
pub(super) fn key_type(record: &Record) -> Type {
    match &record.key {
        Key::Outside(ty) => ty.clone(),
        Key::Fields(fields) => match fields.as_slice() {
            [one] => one.ty.clone(),
            all => {
                let types = all.iter().map(|field| &field.ty);
                syn::parse_quote!((#(#types),*))
            }
        },
    }
}

/// The codec of the table. The codecs of keyloom are recognized by name.
pub(super) fn codec(record: &Record) -> TokenStream {
    let support = record.support();
    let codec = match &record.codec {
        None => quote!(#support::value::Postcard),
        Some(path) => named_codec(path, &support),
    };
    match record.upgrade {
        Some(_) => quote!(#support::Upgrading<#codec>),
        None => codec,
    }
}

fn named_codec(path: &Path, support: &Path) -> TokenStream {
    match path.get_ident() {
        Some(name) if ["Postcard", "Json", "MessagePack"].iter().any(|known| name == known) => {
            quote_spanned!(name.span()=> #support::value::#name)
        }
        _ => quote!(#path),
    }
}
