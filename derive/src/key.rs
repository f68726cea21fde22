//! `#[derive(Key)]`.

mod parse;

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{DeriveInput, Fields, Ident, Result};

use parse::{Layout, ParsedKey, Variant};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let key = parse::parse(input)?;
    let support = key.support();
    let ident = &key.ident;
    let pack = pack(&key);
    let unpack = unpack(&key);
    let shape = shape(&key);
    Ok(quote! {
        const _: () = {
            use #support as __keyloom;
            #pack
            #unpack
            #[automatically_derived]
            impl __keyloom::Parts for #ident {
                type Owned = Self;
                type Borrowed<'k> = Self;
                type First = Self;
            }
            #[automatically_derived]
            impl __keyloom::KeyShape for #ident {
                fn key_shape() -> ::std::string::String {
                    #shape
                }
            }
            #[automatically_derived]
            impl __keyloom::PackAs<#ident> for #ident {}
            #[automatically_derived]
            impl __keyloom::PrefixOf<#ident> for #ident {}
        };
    })
}

fn pack(key: &ParsedKey<'_>) -> TokenStream {
    let ident = &key.ident;
    let body = match &key.layout {
        Layout::Struct(fields) => {
            let (pattern, names) = bind(fields);
            let fields = pack_fields(fields, &names);
            quote! { let Self #pattern = self; #fields }
        }
        Layout::Enum(variants) => {
            let arms = variants.iter().map(pack_variant);
            quote! { match self { #(#arms)* } }
        }
    };
    let element = key.is_one_element().then(|| {
        quote! {
            fn pack_element(&self, out: &mut __keyloom::Packer) {
                __keyloom::Pack::pack(self, out);
            }
        }
    });
    quote! {
        #[automatically_derived]
        impl __keyloom::Pack for #ident {
            fn pack(&self, out: &mut __keyloom::Packer) { #body }
            #element
        }
    }
}

fn pack_variant(variant: &Variant<'_>) -> TokenStream {
    let Variant { ident, number, fields } = variant;
    let (pattern, names) = bind(fields);
    let fields = pack_fields(fields, &names);
    quote! {
        Self::#ident #pattern => {
            __keyloom::Pack::pack_element(&#number, out);
            #fields
        }
    }
}

/// A pattern of all fields, and the names that it binds.
fn bind(fields: &Fields) -> (TokenStream, Vec<Ident>) {
    let names: Vec<Ident> = (0..fields.len()).map(|at| format_ident!("field{at}")).collect();
    let members = fields.members();
    (quote!({ #(#members: #names),* }), names)
}

fn pack_fields(fields: &Fields, names: &[Ident]) -> TokenStream {
    let types = fields.iter().map(|field| &field.ty);
    let packed = types.zip(names).map(|(ty, name)| {
        quote_spanned!(ty.span()=> <#ty as __keyloom::Pack>::pack_element(#name, out);)
    });
    quote!(#(#packed)*)
}

fn unpack(key: &ParsedKey<'_>) -> TokenStream {
    let ident = &key.ident;
    let body = match &key.layout {
        Layout::Struct(fields) => {
            let fields = unpack_fields(fields);
            quote!(::core::result::Result::Ok(Self #fields))
        }
        Layout::Enum(variants) => unpack_variant(ident, variants),
    };
    let element = key.is_one_element().then(|| {
        quote! {
            fn unpack_element(
                input: &mut __keyloom::Unpacker<'k>,
            ) -> ::core::result::Result<Self, __keyloom::DecodeError> {
                <Self as __keyloom::Unpack<'k>>::unpack(input)
            }
        }
    });
    quote! {
        #[automatically_derived]
        impl<'k> __keyloom::Unpack<'k> for #ident {
            fn unpack(
                input: &mut __keyloom::Unpacker<'k>,
            ) -> ::core::result::Result<Self, __keyloom::DecodeError> {
                #body
            }
            #element
        }
    }
}

fn unpack_fields(fields: &Fields) -> TokenStream {
    let members = fields.members();
    let values = fields.iter().map(|field| {
        let ty = &field.ty;
        quote_spanned!(ty.span()=> <#ty as __keyloom::Unpack<'k>>::unpack_element(input)?)
    });
    quote!({ #(#members: #values),* })
}

fn unpack_variant(of: &Ident, variants: &[Variant<'_>]) -> TokenStream {
    let arms = variants.iter().map(|Variant { ident, number, fields }| {
        let fields = unpack_fields(fields);
        quote!(#number => ::core::result::Result::Ok(Self::#ident #fields),)
    });
    let name = of.to_string();
    quote! {
        match <::core::primitive::u32 as __keyloom::Unpack<'k>>::unpack_element(input)? {
            #(#arms)*
            other => ::core::result::Result::Err(__keyloom::unknown_variant(input, other, #name)),
        }
    }
}

fn shape(key: &ParsedKey<'_>) -> TokenStream {
    match &key.layout {
        Layout::Struct(fields) => {
            let fields = field_shapes(fields);
            quote!(__keyloom::shape_of_struct::<Self>(&[#fields]))
        }
        Layout::Enum(variants) => {
            let variants = variants.iter().map(|Variant { ident, number, fields }| {
                let (name, fields) = (ident.unraw().to_string(), field_shapes(fields));
                quote!((#number, #name, &[#fields]))
            });
            quote!(__keyloom::shape_of_enum::<Self>(&[#(#variants),*]))
        }
    }
}

fn field_shapes(fields: &Fields) -> TokenStream {
    let shapes = fields.iter().map(|field| {
        let ty = &field.ty;
        quote_spanned!(ty.span()=> <#ty as __keyloom::KeyShape>::key_shape())
    });
    quote!(#(#shapes),*)
}
