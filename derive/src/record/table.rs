//! The generated type: the table and its indexes.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::Ident;
use syn::ext::IdentExt;
use syn::spanned::Spanned;

use super::expand::{codec, key_type};
use super::index::{Derived, Index};
use super::parse::{Key, Record};
use super::parts::Part;

/// A field of the generated type.
struct Attached {
    name: Ident,
    /// `Index<..>` or another kind.
    kind: TokenStream,
    docs: String,
}

fn attached(record: &Record) -> Vec<Attached> {
    let support = record.support();
    let (ident, key) = (&record.ident, key_type(record));
    let indexes = record.indexes.iter().map(|index| {
        let parts = index.parts_type(&support);
        let kind = quote!(#support::Index<#key, #ident, #parts>);
        Attached { name: index.name.clone(), kind, docs: docs(index) }
    });
    let derived = record.derived.iter().map(|Derived { name, ty, .. }| {
        let docs = format!("The derived data `{name}` of the table.");
        Attached { name: name.clone(), kind: quote!(#ty), docs }
    });
    indexes.chain(derived).collect()
}

/// The parts in words: ``The unique index on `tenant`, `opened` descending``.
fn docs(index: &Index) -> String {
    let part = |Part { field, is_desc, is_each, .. }: &Part| {
        let each = if *is_each { "each element of " } else { "" };
        let desc = if *is_desc { " (descending)" } else { "" };
        format!("{each}`{}`{desc}", field.unraw())
    };
    let parts: Vec<String> = index.parts.iter().map(part).collect();
    let unique = if index.is_unique { "unique " } else { "" };
    let some = if index.when.is_some() { ", for records that meet its condition" } else { "" };
    format!("The {unique}index on {}{some}.", parts.join(", "))
}

pub(super) fn definition(record: &Record) -> TokenStream {
    let support = record.support();
    let Record { ident, vis, name, .. } = record;
    let (key, codec) = (key_type(record), codec(record));
    let attached = attached(record);
    let fields = attached.iter().map(|Attached { name, kind, docs }| {
        quote! {
            #[doc = #docs]
            #vis #name: #support::Attached<#kind, #codec>
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
    let indexes = record.indexes.iter().map(|index| declare_index(record, index));
    let derived = record.derived.iter().map(|Derived { name, make, version, .. }| {
        let text = name.unraw().to_string();
        quote_spanned!(make.span()=> #name: schema.derive(&table, #text, #version, #make)?,)
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
            ::core::result::Result::Ok(Self { #(#indexes)* #(#derived)* table })
        }
    }
}

fn declare_index(record: &Record, index: &Index) -> TokenStream {
    let ident = &record.ident;
    let key = key_type(record);
    let Index { name, version, .. } = index;
    let text = name.unraw().to_string();
    let method =
        if index.is_unique { format_ident!("unique_index") } else { format_ident!("index") };
    let entries = entries(index);
    let entries = match &index.when {
        None => entries,
        Some(_) => quote! {
            if <#ident as __Conditions>::#name(record) {
                #entries
            } else {
                __keyloom::IndexEntries::none()
            }
        },
    };
    quote! {
        #name: schema.#method(&table, #text, #version, |_: &#key, record: &#ident| #entries)?,
    }
}

/// The expression for the entries of `record`.
fn entries(index: &Index) -> TokenStream {
    let parts: Vec<TokenStream> = index.parts.iter().map(part).collect();
    let parts = match parts.as_slice() {
        [one] => one.clone(),
        all => quote!((#(#all),*)),
    };
    match index.parts.iter().find(|part| part.is_each) {
        None => quote!({ __keyloom::entry(#parts) }),
        Some(Part { field, .. }) => quote! {
            ::core::iter::IntoIterator::into_iter(&record.#field)
                .map(|each| #parts)
                .collect::<__keyloom::IndexEntries<_>>()
        },
    }
}

fn part(part: &Part) -> TokenStream {
    let Part { field, ty, is_desc, is_each } = part;
    let value = if *is_each { quote!(each) } else { quote_spanned!(ty.span()=> &record.#field) };
    if *is_desc { quote!(__keyloom::Desc(#value)) } else { value }
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

fn methods(record: &Record) -> Vec<TokenStream> {
    let vis = &record.vis;
    let method = |Attached { name, kind, docs }: Attached| {
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
    attached(record).into_iter().map(method).collect()
}
