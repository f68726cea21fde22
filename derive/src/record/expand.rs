//! The implementations for the record type.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned;

use super::codec::key_type;
use super::declare::{amount_name, condition_name};
use super::derived::Kind;
use super::parse::{From, Key, Record, Upgrade};
use super::table;

pub(super) fn expand(record: &Record) -> TokenStream {
    let support = record.support();
    let generated = table::definition(record);
    let declare = table::implementation(record);
    let key = key(record);
    let upgrade = record.upgrade.as_ref().map(|upgrade| implement_upgrade(record, upgrade));
    let expressions = expressions(record);
    quote! {
        #generated
        const _: () = {
            use #support as __keyloom;
            #expressions
            #key
            #upgrade
            #declare
        };
    }
}

fn key(record: &Record) -> Option<TokenStream> {
    let Key::Fields(fields) = &record.key else { return None };
    let Record { ident, vis, .. } = record;
    let ty = key_type(record);
    let values = fields.iter().map(|field| {
        let name = &field.ident;
        quote_spanned!(field.ty.span()=> ::core::clone::Clone::clone(&self.#name))
    });
    let values: Vec<TokenStream> = values.collect();
    let value = match values.as_slice() {
        [one] => one.clone(),
        all => quote!((#(#all),*)),
    };
    Some(quote! {
        #[automatically_derived]
        impl #ident {
            /// The key of the record in its table.
            #[must_use]
            #vis fn key(&self) -> #ty {
                #value
            }
        }
    })
}

fn implement_upgrade(record: &Record, upgrade: &Upgrade) -> TokenStream {
    let Record { ident, .. } = record;
    let version = u8::try_from(upgrade.version).unwrap_or(u8::MAX);
    let (from, old, body) = match &upgrade.from {
        From::Version(ty) => (quote!(#ty), quote!(#ty), convert(ty)),
        From::Plain(ty) => (quote!(__keyloom::Plain<#ty>), quote!(#ty), convert(ty)),
        From::Nothing => {
            (quote!(__keyloom::Nothing), quote!(__keyloom::Nothing), quote!(match old {}))
        }
    };
    quote! {
        #[automatically_derived]
        impl __keyloom::Upgrade for #ident {
            const VERSION: ::core::primitive::u8 = #version;
            type From = #from;
            fn upgrade(old: #old) -> ::core::result::Result<Self, __keyloom::BoxedError> {
                #body
            }
        }
    }
}

fn convert(old: &Type) -> TokenStream {
    quote_spanned!(old.span()=> __keyloom::convert::<#old, Self>(old))
}

/// The expressions of the program. They are methods of a trait, so that `self` is the record.
fn expressions(record: &Record) -> Option<TokenStream> {
    let mut functions = Vec::new();
    for data in &record.data {
        if let Some(when) = &data.when {
            functions.push((condition_name(data), quote!(::core::primitive::bool), when));
        }
        if let Kind::Totals { of: Some(of), .. } = &data.kind {
            functions.push((amount_name(data), quote!(::core::primitive::i64), of));
        }
    }
    if functions.is_empty() {
        return None;
    }
    let ident = &record.ident;
    let heads = functions.iter().map(|(name, ty, _)| quote!(fn #name(&self) -> #ty));
    let heads: Vec<TokenStream> = heads.collect();
    let bodies = functions.iter().map(|(.., body)| body);
    Some(quote! {
        trait __Expressions {
            #(#heads;)*
        }
        #[automatically_derived]
        impl __Expressions for #ident {
            #(#heads { #bodies })*
        }
    })
}
