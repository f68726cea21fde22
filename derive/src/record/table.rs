//! The generated type: the table and its indexes.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Field;
use syn::ext::IdentExt;

use super::codec::{codec, key_type};
use super::declare::{self, field_type, kind_type};
use super::derived::{Derived, Kind};
use super::parse::{Key, Record};
use super::parts::Part;

/// The docs of the derived data: ``The unique index on `tenant`, `opened` (descending).``
fn docs(data: &Derived) -> String {
    let some = if data.when.is_some() { ", for records that meet its condition" } else { "" };
    let deferred = if data.is_deferred { "deferred " } else { "" };
    let what = match &data.kind {
        Kind::Index { parts, is_unique, .. } => {
            let unique = if *is_unique { "unique " } else { "" };
            format!("{unique}index on {}", named(parts))
        }
        Kind::Ranked { parts } => format!("ranked index on {}", named(parts)),
        Kind::Totals { parts, .. } if parts.is_empty() => "total of all records".into(),
        Kind::Totals { parts, .. } => format!("totals by {}", named(parts)),
        Kind::Points { at } => {
            let [latitude, longitude] = at.each_ref().map(name_of);
            format!("index of the points at `{latitude}`, `{longitude}`")
        }
        Kind::Text { fields, .. } => format!("text index of {}", named(fields)),
        Kind::Inverted { fields, .. } => format!("inverted index of {}", named(fields)),
        Kind::Expiry { deadline } => format!("expiry of the records at `{}`", name_of(deadline)),
        Kind::Other { .. } => format!("derived data `{}` of the table", data.name),
    };
    format!("The {deferred}{what}{some}.")
}

fn name_of(field: &Field) -> String {
    field.ident.as_ref().map(|name| name.unraw().to_string()).unwrap_or_default()
}

fn named(parts: &[Part]) -> String {
    let part = |Part { field, is_desc, is_each, .. }: &Part| {
        let each = if *is_each { "each element of " } else { "" };
        let desc = if *is_desc { " (descending)" } else { "" };
        format!("{each}`{}`{desc}", field.unraw())
    };
    parts.iter().map(part).collect::<Vec<_>>().join(", ")
}

pub(super) fn definition(record: &Record) -> TokenStream {
    let support = record.support();
    let Record { ident, vis, name, .. } = record;
    let (key, codec) = (key_type(record), codec(record));
    let fields = record.data.iter().map(|data| {
        let (name, docs, ty) = (&data.name, docs(data), field_type(record, data));
        quote! {
            #[doc = #docs]
            #vis #name: #ty
        }
    });
    let docs = format!(
        "The table `{}` of [`{ident}`] records, and the data derived from them.",
        record.table.value()
    );
    quote! {
        #[doc = #docs]
        #[derive(::core::clone::Clone, ::core::fmt::Debug)]
        #[allow(clippy::type_complexity)]
        #vis struct #name {
            /// The records.
            #vis table: #support::Table<#key, #ident, #codec>,
            #(#fields,)*
        }
    }
}

pub(super) fn implementation(record: &Record) -> TokenStream {
    let Record { ident, name, .. } = record;
    let (key, codec) = (key_type(record), codec(record));
    let declare = declare(record);
    let put = put_record(record);
    let methods = methods(record);
    quote! {
        #[automatically_derived]
        impl #name {
            #declare
            #put
            #(#methods)*
        }
        #[automatically_derived]
        impl ::core::ops::Deref for #name {
            type Target = __keyloom::Table<#key, #ident, #codec>;
            fn deref(&self) -> &Self::Target {
                &self.table
            }
        }
    }
}

fn declare(record: &Record) -> TokenStream {
    let Record { ident, vis, table, .. } = record;
    let (key, codec) = (key_type(record), codec(record));
    let version = match &record.upgrade {
        Some(_) => {
            quote!(::core::primitive::u32::from(<#ident as __keyloom::Upgrade>::VERSION))
        }
        None => quote!(1),
    };
    let keyed = match &record.key {
        Key::Fields(_) => quote!(.keyed_by(#ident::key)),
        Key::Outside(_) => quote!(),
    };
    let data = record.data.iter().map(|data| {
        let (name, declared) = (&data.name, declare::declare(record, data));
        quote!(#name: #declared,)
    });
    quote! {
        /// Declares the table and the data derived from it, and adds them to the schema if they
        /// are new.
        ///
        /// # Errors
        /// The errors of `Schema::table_with` and `Schema::derive`.
        #vis fn declare(
            schema: &__keyloom::Schema<'_, impl __keyloom::Store>,
        ) -> __keyloom::Result<Self> {
            let table = schema.table_with::<#key, #ident, #codec>(#table, #version)?#keyed;
            ::core::result::Result::Ok(Self { #(#data)* table })
        }
    }
}

fn put_record(record: &Record) -> Option<TokenStream> {
    let Key::Fields(_) = &record.key else { return None };
    let Record { ident, vis, .. } = record;
    let docs = format!(
        "Writes a record under its own [`key`]({ident}::key), and updates the derived data. A record \
         whose key has changed stays under the old one, too: delete it there."
    );
    Some(quote! {
        #[doc = #docs]
        ///
        /// # Errors
        /// The errors of `Table::put`.
        #vis fn put_record(
            &self,
            txn: &mut impl __keyloom::Writer,
            record: &#ident,
        ) -> __keyloom::Result<()> {
            self.table.put(txn, &#ident::key(record), record)
        }
    })
}

/// A method for each piece of derived data that may be unreadable. An expiry has no such method: it
/// is read through its own methods.
fn methods(record: &Record) -> Vec<TokenStream> {
    let vis = &record.vis;
    let method = |data: &Derived| {
        let (name, docs, kind) = (&data.name, docs(data), kind_type(record, data));
        quote! {
            #[doc = #docs]
            ///
            /// # Errors
            /// The errors of `Attached::at`: the data is not built or has changed.
            #vis fn #name(&self, reader: &impl __keyloom::Reader) -> __keyloom::Result<&#kind> {
                self.#name.at(reader)
            }
        }
    };
    let is_attached = |data: &&Derived| !matches!(data.kind, Kind::Expiry { .. });
    record.data.iter().filter(is_attached).map(method).collect()
}
