//! The shape of keys, which a schema compares.

use std::borrow::Cow;
use std::ops::Deref;

use keyloom::key::{BigInt, Versionstamp};
use keyloom::{Desc, Element, List};
use uuid::Uuid;

use super::{AnyParts, Parts};

/// The shape of a key type: the elements of its packed form, as text that a schema stores and
/// compares. Integers of all widths share one encoding, and all kinds of strings share another.
///
/// The shape of your own type consists of its name and of the elements that
/// [`impl_parts!`](crate::impl_parts) declares. So a schema refuses a program whose type delegates
/// to other elements, even if the type has the same name.
///
/// ```
/// use keyloom_tables::parts::KeyShape;
/// assert_eq!(<(u32, String, Option<i64>)>::key_shape(), "(integer, string, Option<integer>)");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a record key or the parts of an index",
    note = "a type of your own becomes one with `#[derive(keyloom_patterns::Key)]`, or with `keyloom_tables::impl_parts!`"
)]
pub trait KeyShape {
    /// The elements as text, such as `(integer, string)`.
    fn key_shape() -> String;
}

macro_rules! named {
    ($($(@[$($generics:tt)*])? $type:ty: $name:expr;)+) => {$(
        impl$(<$($generics)*>)? KeyShape for $type {
            fn key_shape() -> String {
                $name.into()
            }
        }
    )+};
}

named! {
    u8: "integer"; u16: "integer"; u32: "integer"; u64: "integer"; u128: "integer";
    i8: "integer"; i16: "integer"; i32: "integer"; i64: "integer"; i128: "integer";
    usize: "integer"; isize: "integer";
    f32: "f32"; f64: "f64"; bool: "bool";
    str: "string"; String: "string";
    Uuid: "Uuid"; Versionstamp: "Versionstamp"; BigInt: "BigInt"; Element: "Element";
    (): "()"; AnyParts: "any parts";
    [u8]: "Vec<integer>"; Vec<u8>: "Vec<integer>";
    @[const N: usize] [u8; N]: format!("[integer; {N}]");
    @[T: KeyShape + ?Sized] &T: T::key_shape();
    @[T: KeyShape + ToOwned + ?Sized] Cow<'_, T>: T::key_shape();
    @[T: KeyShape] Option<T>: format!("Option<{}>", T::key_shape());
    @[T: KeyShape] Desc<T>: format!("Desc<{}>", T::key_shape());
    @[L: Deref<Target = [T]>, T: KeyShape] List<L>: format!("List<Vec<{}>>", T::key_shape());
}

macro_rules! tuples {
    ($($part:ident)+) => {
        impl<$($part: KeyShape),+> KeyShape for ($($part,)+) {
            fn key_shape() -> String {
                match [$($part::key_shape()),+].as_slice() {
                    [one] => format!("({one},)"),
                    all => format!("({})", all.join(", ")),
                }
            }
        }
        tuples!(@without_first $($part)+);
    };
    (@without_first $first:ident) => {};
    (@without_first $first:ident $($rest:ident)+) => { tuples!($($rest)+); };
}

tuples!(A B C D E F G H I J K L);

/// The shape of a type that delegates to a `P`: the name of the type, and the shape of `P`.
pub fn delegates_to<T, P: Parts>() -> String {
    let name = keyloom::value::shape::type_name::<T>();
    match P::key_shape() {
        tuple if tuple.starts_with('(') => name + &tuple,
        one => format!("{name}({one})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_keys_have_no_paths_and_no_widths() {
        assert_eq!(List::<Vec<Option<String>>>::key_shape(), "List<Vec<Option<string>>>");
        assert_eq!(<(AnyParts, u8)>::key_shape(), "(any parts, integer)");
        assert_eq!(<(&str,)>::key_shape(), "(string,)");
        assert_eq!(
            <(u32, Cow<'_, str>, [u8; 4], i64)>::key_shape(),
            "(integer, string, [integer; 4], integer)"
        );
    }

    #[test]
    fn a_type_of_ones_own_has_the_elements_that_it_delegates_to() {
        struct Isbn;
        assert_eq!(delegates_to::<Isbn, u64>(), "Isbn(integer)");
        assert_eq!(delegates_to::<Isbn, (u64, Desc<i8>)>(), "Isbn(integer, Desc<integer>)");
    }
}
