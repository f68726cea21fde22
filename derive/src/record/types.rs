//! Types of fields: which are collections?

use quote::quote_spanned;
use syn::spanned::Spanned;
use syn::{Error, GenericArgument, PathArguments, PathSegment, Result, Type, parse_quote};

const COLLECTIONS: [&str; 6] =
    ["Vec", "VecDeque", "BTreeSet", "HashSet", "LinkedList", "BinaryHeap"];

const SINGLE: [&str; 21] = [
    "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32",
    "f64", "bool", "char", "str", "String", "Option", "Uuid", "Desc",
];

/// The type of the elements of a collection.
pub(super) fn element(ty: &Type) -> Result<Type> {
    match ty {
        Type::Array(array) => Ok((*array.elem).clone()),
        Type::Paren(inner) => element(&inner.elem),
        Type::Group(inner) => element(&inner.elem),
        Type::Tuple(_) => Err(no_collection(ty)),
        Type::Path(path) => match path.path.segments.last() {
            Some(last) if is_one_of(last, &SINGLE) => Err(no_collection(ty)),
            Some(last) if is_one_of(last, &COLLECTIONS) => {
                Ok(first_argument(last).unwrap_or_else(|| item(ty)))
            }
            _ => Ok(item(ty)),
        },
        _ => Ok(item(ty)),
    }
}

/// The type of a part that is not `each`. Bytes are the only collection that may be a single part.
pub(super) fn single(ty: &Type) -> Result<Type> {
    let elements =
        match ty {
            Type::Array(array) => Some((*array.elem).clone()),
            Type::Path(path) => path.path.segments.last().and_then(|last| {
                is_one_of(last, &COLLECTIONS).then(|| first_argument(last)).flatten()
            }),
            _ => None,
        };
    let is_byte = |ty: &Type| matches!(ty, Type::Path(path) if path.path.is_ident("u8"));
    match elements {
        Some(elements) if !is_byte(&elements) => {
            let message = "a collection is not one part of an index; add `each` for one entry per \
                           element";
            Err(Error::new(ty.span(), message))
        }
        _ => Ok(ty.clone()),
    }
}

fn is_one_of(segment: &PathSegment, names: &[&str]) -> bool {
    names.iter().any(|name| segment.ident == name)
}

fn first_argument(segment: &PathSegment) -> Option<Type> {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty.clone()),
        _ => None,
    })
}

/// The element type of a collection that is not recognized by name.
fn item(ty: &Type) -> Type {
    let item = quote_spanned!(ty.span()=> <#ty as ::core::iter::IntoIterator>::Item);
    parse_quote!(#item)
}

fn no_collection(ty: &Type) -> Error {
    let message = "`each` indexes the elements of a collection, such as a `Vec<String>`; this type \
                   has no elements, remove `each`";
    Error::new(ty.span(), message)
}
