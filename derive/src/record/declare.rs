//! Generates the Rust expressions that declare derived data.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Expr, Field, Ident, Path, Type};

use super::codec::{codec, key_type};
use super::derived::{Derived, Kind};
use super::parse::Record;
use super::parts::{Part, parts_type};

/// The type of the data, such as `Index<..>`.
pub(super) fn kind_type(record: &Record, data: &Derived) -> TokenStream {
    let support = record.support();
    let (ident, key) = (&record.ident, key_type(record));
    let of_parts = |kind: &str, parts: &[Part]| {
        let (kind, parts) = (format_ident!("{kind}"), parts_type(parts, &support));
        quote!(#support::#kind<#key, #ident, #parts>)
    };
    match &data.kind {
        Kind::Index { parts, .. } => of_parts("Index", parts),
        Kind::Ranked { parts } => of_parts("RankedIndex", parts),
        Kind::Totals { parts, .. } => of_parts("Totals", parts),
        Kind::Points { .. } => quote!(#support::PointIndex<#key, #ident>),
        Kind::Text { .. } => quote!(#support::TextIndex<#key, #ident>),
        Kind::Inverted { .. } => quote!(#support::InvertedIndex<#key, #ident>),
        Kind::Expiry { .. } => quote!(#support::Expiry),
        Kind::Other { ty, .. } => quote!(#ty),
    }
}

/// The type of the generated field.
pub(super) fn field_type(record: &Record, data: &Derived) -> TokenStream {
    let (support, kind, codec) = (record.support(), kind_type(record, data), codec(record));
    match data.kind {
        Kind::Expiry { .. } => {
            let (key, ident) = (key_type(record), &record.ident);
            quote!(#kind<#key, #ident, #codec>)
        }
        _ => quote!(#support::Attached<#kind, #codec>),
    }
}

/// The expression that declares the data in `schema` for `table`.
pub(super) fn declare(record: &Record, data: &Derived) -> TokenStream {
    let (key, ident) = (&key_type(record), &record.ident);
    let head = quote!(|_: &#key, record: &#ident|);
    let version = data.version;
    let text = data.name.unraw().to_string();
    let data_of = |make: TokenStream| match data.is_deferred {
        true => quote!(schema.derive_deferred(&table, #text, #version, #make)?),
        false => quote!(schema.derive(&table, #text, #version, #make)?),
    };
    let in_space = |made: TokenStream| data_of(quote!(|space| ::core::result::Result::Ok(#made)));
    match &data.kind {
        Kind::Index { parts, is_unique, covering } => {
            let entries = when(record, data, entries(parts, covering), &none("IndexEntries"));
            if data.is_deferred {
                return in_space(quote!(__keyloom::Index::new(space, #head #entries)));
            }
            let method = if *is_unique { "unique_index" } else { "index" };
            let method = format_ident!("{method}");
            quote!(schema.#method(&table, #text, #version, #head #entries)?)
        }
        Kind::Ranked { parts } => {
            let entries = when(record, data, entries(parts, &[]), &none("IndexEntries"));
            in_space(quote!(__keyloom::RankedIndex::new(space, #head #entries)))
        }
        Kind::Totals { parts, of } => {
            let entries = contributions(record, data, parts, of.as_deref());
            let entries = when(record, data, entries, &none("Contributions"));
            in_space(quote!(__keyloom::Totals::new(space, #head #entries)))
        }
        Kind::Points { at } => {
            let at = at
                .each_ref()
                .map(|Field { ident, ty, .. }| quote_spanned!(ty.span()=> record.#ident));
            let [latitude, longitude] = &at;
            let some = quote!(__keyloom::LatLng::new(#latitude, #longitude).map(::core::option::Option::Some));
            let none = quote!(::core::result::Result::Ok(::core::option::Option::None));
            let point = when(record, data, quote!({ #some }), &none);
            in_space(quote!(__keyloom::PointIndex::new(space, #head #point)))
        }
        Kind::Text { fields, analyzer, filters, keys_as_ids } => {
            let new = new_with_ids(*keys_as_ids);
            let fields = fields.iter().map(|part| text_field(part, analyzer, key, ident));
            let filters = filters.iter().map(|part| filter_field(part, "values", &head));
            in_space(quote!(__keyloom::TextIndex::#new(space)#(#fields)*#(#filters)*))
        }
        Kind::Inverted { fields, keys_as_ids } => {
            let new = new_with_ids(*keys_as_ids);
            let fields = fields.iter().map(|part| filter_field(part, "field", &head));
            in_space(quote!(__keyloom::InvertedIndex::#new(space)#(#fields)*))
        }
        Kind::Expiry { deadline } => {
            let Field { ident: field, ty, .. } = &**deadline;
            let at = quote_spanned!(ty.span()=> __keyloom::ToDeadline::to_deadline(&record.#field));
            quote!(__keyloom::Expiry::new(schema, &table, #text, #version, #head #at)?)
        }
        Kind::Other { make, .. } => data_of(quote!(#make)),
    }
}

fn none(of: &str) -> TokenStream {
    let of = format_ident!("{of}");
    quote!(__keyloom::#of::none())
}

/// The expression that is `body` for records that meet the condition of the data, and `none` for
/// the others.
fn when(record: &Record, data: &Derived, body: TokenStream, none: &TokenStream) -> TokenStream {
    let Some(_) = &data.when else { return body };
    let (ident, condition) = (&record.ident, condition_name(data));
    quote!({ if <#ident as __Expressions>::#condition(record) #body else { #none } })
}

pub(super) fn condition_name(data: &Derived) -> Ident {
    format_ident!("when_{}", data.name.unraw())
}

pub(super) fn amount_name(data: &Derived) -> Ident {
    format_ident!("of_{}", data.name.unraw())
}

/// The block of code that returns the entries of `record`.
fn entries(parts: &[Part], covering: &[Field]) -> TokenStream {
    let values = part_values(parts);
    let entries = match parts.iter().find(|part| part.is_each) {
        None => quote!(__keyloom::entry(#values)),
        Some(Part { field, .. }) => quote! {
            ::core::iter::IntoIterator::into_iter(&record.#field)
                .map(|each| #values)
                .collect::<__keyloom::IndexEntries<_>>()
        },
    };
    let covered =
        covering.iter().map(|Field { ident, ty, .. }| quote_spanned!(ty.span()=> &record.#ident));
    let covered: Vec<TokenStream> = covered.collect();
    match covered.as_slice() {
        [] => quote!({ #entries }),
        [one] => quote!({ #entries.covering(#one) }),
        all => quote!({ #entries.covering((#(#all),*)) }),
    }
}

/// The block of code that returns the contributions of `record`.
fn contributions(
    record: &Record,
    data: &Derived,
    parts: &[Part],
    of: Option<&Expr>,
) -> TokenStream {
    let values = part_values(parts);
    let ident = &record.ident;
    let amount = match of {
        None => quote!(1),
        Some(_) => {
            let amount = amount_name(data);
            quote!(<#ident as __Expressions>::#amount(record))
        }
    };
    match parts.iter().find(|part| part.is_each) {
        None => quote!({ __keyloom::contribution(#values, #amount) }),
        Some(Part { field, .. }) => quote!({
            let amount = #amount;
            ::core::iter::IntoIterator::into_iter(&record.#field)
                .map(|each| (#values, amount))
                .collect::<__keyloom::Contributions<_>>()
        }),
    }
}

/// One part, or a tuple of several.
fn part_values(parts: &[Part]) -> TokenStream {
    let values: Vec<TokenStream> = parts.iter().map(part_value).collect();
    match values.as_slice() {
        [one] => one.clone(),
        all => quote!((#(#all),*)),
    }
}

fn part_value(part: &Part) -> TokenStream {
    let Part { field, ty, is_desc, is_each, .. } = part;
    let value = if *is_each { quote!(each) } else { quote_spanned!(ty.span()=> &record.#field) };
    if *is_desc { quote!(__keyloom::Desc(#value)) } else { value }
}

fn new_with_ids(keys_as_ids: bool) -> Ident {
    if keys_as_ids { format_ident!("with_keys_as_ids") } else { format_ident!("new") }
}

fn text_field(part: &Part, analyzer: &Expr, key: &Type, record: &Ident) -> TokenStream {
    let Part { field, ty, is_each, .. } = part;
    let name = field.unraw().to_string();
    let add = match *is_each || is_option(ty) {
        true => quote! {
            for each in ::core::iter::IntoIterator::into_iter(&record.#field) {
                add(each);
            }
        },
        false => quote_spanned!(ty.span()=> add(&record.#field);),
    };
    quote! {
        .field(#name, #analyzer, |_: &#key, record: &#record, add: &mut dyn ::core::ops::FnMut(&::core::primitive::str)| { #add })
    }
}

fn is_option(ty: &Type) -> bool {
    let last = |path: &Path| path.segments.last().is_some_and(|last| last.ident == "Option");
    matches!(ty, Type::Path(path) if last(&path.path))
}

/// A field of bitmaps. `many` is the method that declares a field of several values.
fn filter_field(part: &Part, many: &str, head: &TokenStream) -> TokenStream {
    let many = format_ident!("{many}");
    let Part { field, ty, is_each, is_integer, .. } = part;
    let name = field.unraw().to_string();
    if *is_integer {
        let integer = quote_spanned!(ty.span()=> __keyloom::ToInteger::to_integer(&record.#field));
        return quote!(.integers(#name, #head #integer));
    }
    let value = quote_spanned!(ty.span()=> &record.#field);
    match is_each {
        true => quote! {
            .#many(#name, #head {
                ::core::iter::IntoIterator::into_iter(#value).collect::<__keyloom::FieldValues<_>>()
            })
        },
        false => quote!(.single_value(#name, #head __keyloom::single(#value))),
    }
}
