//! Typed parts: which queries fit the parts of an index?
//!
//! The types of the parts of an index come from its function:
//! `entry((&city.country, Desc(city.population)))` makes an `Index` whose parts are
//! `(String, Desc<u64>)`. A query passes leading parts of these types. Strings and bytes may be
//! borrowed, and literals take the type of their part. A query of another type could find nothing,
//! so it does not compile:
//!
//! ```compile_fail,E0277
//! use keyloom::{Desc, Memory, Store, Subspace};
//! use keyloom_tables::{Index, entry};
//! let by_team = Index::new(&Subspace::new("by_team"), |_: &u32, (team, score): &(u64, i64)| entry((*team, Desc(*score))));
//! by_team.count(&Memory::new().snapshot()?, (1, 50))?; // not `(1, Desc(50))`
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! | parts of the index | queries |
//! |---|---|
//! | `String` | `"FR"`, `&name`, `..` |
//! | `(String, u64)` | `"FR"`, `("FR",)`, `("FR", 7)`, `..` |
//! | `(String, Desc<i64>)` | `"FR"`, `("FR", Desc(50))` |
//! | `(Option<u8>, Vec<u8>)` | `Some(3)`, `(None::<u8>, b"abc")` |
//!
//! Integers of all widths share one [encoding](keyloom::key), but a query must use the width of the
//! part. Convert a variable of another width, as in `u64::from(id)` or `u8::try_from(n)`. A
//! conversion to a narrower type returns an error for a number that the part cannot hold.
//!
//! In an entry, the record key follows the parts. To select by elements of the record key as well,
//! use `Index::untyped`, whose parts are [`AnyParts`].
//!
//! # A type of your own
//!
//! To use a type that [delegates to a tuple](keyloom::key#a-struct-as-a-key) as a part, declare it
//! with [`impl_parts!`](crate::impl_parts), or with `#[derive(Key)]` of the crate
//! `keyloom-patterns`:
//!
//! ```
//! use keyloom::key::{DecodeError, Pack, Packer, Unpack, Unpacker};
//! use keyloom::{Memory, Store, Subspace};
//! use keyloom_tables::{Index, Table, entry, impl_parts};
//! #[derive(Clone)]
//! struct Isbn(u64);
//! impl Pack for Isbn {
//!     fn pack(&self, out: &mut Packer) {
//!         (self.0,).pack(out);
//!     }
//! }
//! impl<'k> Unpack<'k> for Isbn {
//!     fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
//!         Unpack::unpack(input).map(|(number,)| Self(number))
//!     }
//! }
//! impl_parts!(Isbn as u64);
//!
//! let by_isbn = Index::new(&Subspace::new("by_isbn"), |_id, isbn: &u64| entry(Isbn(*isbn)));
//! let books = Table::<u32, u64>::new(&Subspace::new("books")).with(&by_isbn);
//! let store = Memory::new();
//! store.transact(|txn| books.put(txn, &1, &9_780_262_033))?;
//! assert_eq!(by_isbn.count(&store.snapshot()?, Isbn(9_780_262_033))?, 1);
//! # Ok::<(), keyloom::Error>(())
//! ```

use std::borrow::Cow;
use std::convert::Infallible;
use std::ops::{Deref, RangeFull};

use keyloom::key::{BigInt, Versionstamp};
use keyloom::{Desc, Element, List, Pack, Unpack};
use uuid::Uuid;

pub use group::Group;
pub use group::shape_of_group;
pub use shape::KeyShape;
pub use shape::delegates_to;
pub use variants::join as join_shapes;
pub use variants::shape_of_enum;

mod group;
mod shape;
mod variants;

/// A value that can be the parts of an index entry: a number, a string, bytes, a tuple of these, or
/// references to them; see the [module](self).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a record key or the parts of an index",
    note = "a type of your own becomes one with `#[derive(keyloom_patterns::Key)]`, or with `keyloom_tables::impl_parts!`"
)]
pub trait Parts: Pack + KeyShape {
    /// The owned type, such as `String` for `&str`. The parts of the index have this type.
    type Owned: Parts<Owned = Self::Owned>;
    /// The type borrowed from an entry, such as `&str` for `String`.
    type Borrowed<'k>: Unpack<'k>;
    /// The type of the first part.
    type First;
}

/// A value that has the same packed form as an equal `P`: a `P`, or a borrowed form of it.
#[diagnostic::on_unimplemented(
    message = "mismatched part: expected `{P}`, found `{Self}`",
    label = "this part is a `{P}`",
    note = "strings and bytes may be borrowed, integers have the width of the part"
)]
pub trait PackAs<P>: Pack {}

/// A value that has the same packed form as the leading parts of a `P`, or as all its parts.
#[diagnostic::on_unimplemented(
    message = "mismatched parts: `{Self}` is not a prefix of `{P}`",
    label = "the parts are `{P}`",
    note = "give leading parts in their types: one alone, several in a tuple, `..` for all"
)]
pub trait PrefixOf<P>: Pack {}

/// Represents parts whose types are not known at compile time. Any value counts as a prefix of such
/// parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnyParts(());

impl<Q: Pack> PackAs<AnyParts> for Q {}
impl<Q: Pack> PrefixOf<AnyParts> for Q {}

impl<P: Parts> PrefixOf<P> for () {}
impl<P: Parts> PrefixOf<P> for RangeFull {}

/// The parts of a single total over all records.
impl Parts for () {
    type Owned = ();
    type Borrowed<'k> = ();
    // `()` has no first part.
    type First = Infallible;
}

impl PackAs<()> for () {}

impl<T: Parts + ?Sized> Parts for &T {
    type Owned = T::Owned;
    type Borrowed<'k> = T::Borrowed<'k>;
    type First = T::First;
}

impl<P: Parts, Q: PackAs<P> + ?Sized> PackAs<P> for &Q {}
impl<P: Parts, Q: PrefixOf<P> + ?Sized> PrefixOf<P> for &Q {}

impl<T: Parts + ToOwned + ?Sized> Parts for Cow<'_, T> {
    type Owned = <T as Parts>::Owned;
    type Borrowed<'k> = T::Borrowed<'k>;
    type First = T::First;
}

impl<P: Parts, Q: PackAs<P> + ToOwned + ?Sized> PackAs<P> for Cow<'_, Q> {}
impl<P: Parts, Q: PrefixOf<P> + ToOwned + ?Sized> PrefixOf<P> for Cow<'_, Q> {}

/// Types that are packed as one element, alone or nested. A single value is packed like a tuple of
/// only that value.
macro_rules! one_element {
    ($([$($generics:tt)*] $type:ty, owned $owned:ty, borrowed $borrowed:ty;)+) => {$(
        impl<$($generics)*> Parts for $type {
            type Owned = $owned;
            type Borrowed<'k> = $borrowed;
            type First = $owned;
        }
        impl<$($generics)*> PackAs<$owned> for $type {}
        impl<$($generics)* P: Parts> PrefixOf<P> for $type where $type: PackAs<P::First> {}
    )+};
    ($($type:ident)+) => {
        one_element! { $([] $type, owned $type, borrowed $type;)+ }
    };
}

one_element! { u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 bool }
one_element! { Uuid Versionstamp BigInt Element }
one_element! {
    [] str, owned String, borrowed &'k str;
    [] String, owned String, borrowed &'k str;
    [] [u8], owned Vec<u8>, borrowed &'k [u8];
    [] Vec<u8>, owned Vec<u8>, borrowed &'k [u8];
    [const N: usize,] [u8; N], owned [u8; N], borrowed [u8; N];
}

impl<const N: usize> PackAs<Vec<u8>> for [u8; N] {}

impl<T: Parts> Parts for Option<T> {
    type Owned = Option<T::Owned>;
    type Borrowed<'k> = Option<T::Borrowed<'k>>;
    type First = Option<T::Owned>;
}

impl<P, Q: PackAs<P>> PackAs<Option<P>> for Option<Q> {}
impl<P: Parts, Q: Pack> PrefixOf<P> for Option<Q> where Option<Q>: PackAs<P::First> {}

impl<T: Parts> Parts for Desc<T>
where
    T::Owned: for<'k> Unpack<'k>,
{
    type Owned = Desc<T::Owned>;
    // The stored bytes are complemented, so they cannot be borrowed.
    type Borrowed<'k> = Desc<T::Owned>;
    type First = Desc<T::Owned>;
}

impl<P, Q: PackAs<P>> PackAs<Desc<P>> for Desc<Q> {}
impl<P: Parts, Q: Pack> PrefixOf<P> for Desc<Q> where Desc<Q>: PackAs<P::First> {}

impl<L: Deref<Target = [T]>, T: Parts> Parts for List<L> {
    type Owned = List<Vec<T::Owned>>;
    type Borrowed<'k> = List<Vec<T::Borrowed<'k>>>;
    type First = T::Owned;
}

impl<P, L: Deref<Target = [Q]>, Q: PackAs<P>> PackAs<List<Vec<P>>> for List<L> {}
impl<P, L: Deref<Target = [Q]>, Q: PackAs<P>> PrefixOf<List<Vec<P>>> for List<L> {}

macro_rules! tuple {
    ($first:ident $first_given:ident $($part:ident $given:ident)*) => {
        impl<$first: Parts, $($part: Parts),*> Parts for ($first, $($part,)*) {
            type Owned = ($first::Owned, $($part::Owned,)*);
            type Borrowed<'k> = ($first::Borrowed<'k>, $($part::Borrowed<'k>,)*);
            type First = $first::Owned;
        }

        impl<$first, $first_given: PackAs<$first>, $($part, $given: PackAs<$part>),*>
            PackAs<($first, $($part,)*)> for ($first_given, $($given,)*) {}

        prefixes!([$first $first_given $($part $given)*] []);
    };
}

/// The prefixes of a tuple, the longest first. The first list holds the given parts, the second
/// list holds the parts left out.
macro_rules! prefixes {
    ([] [$($left:ident)*]) => {};
    ([$($part:ident $given:ident)+] [$($left:ident)*]) => {
        impl<$($part, $given: PackAs<$part>,)+ $($left,)*>
            PrefixOf<($($part,)+ $($left,)*)> for ($($given,)+) {}
        without_last!([$($part $given)+] [] [$($left)*]);
    };
}

/// Moves the last given part to the parts left out.
macro_rules! without_last {
    ([$part:ident $given:ident] [$($before:ident)*] [$($left:ident)*]) => {
        prefixes!([$($before)*] [$part $($left)*]);
    };
    ([$part:ident $given:ident $($rest:ident)+] [$($before:ident)*] [$($left:ident)*]) => {
        without_last!([$($rest)+] [$($before)* $part $given] [$($left)*]);
    };
}

tuple!(A QA);
tuple!(A QA B QB);
tuple!(A QA B QB C QC);
tuple!(A QA B QB C QC D QD);
tuple!(A QA B QB C QC D QD E QE);
tuple!(A QA B QB C QC D QD E QE F QF);
tuple!(A QA B QB C QC D QD E QE F QF G QG);
tuple!(A QA B QB C QC D QD E QE F QF G QG H QH);
tuple!(A QA B QB C QC D QD E QE F QF G QG H QH I QI);
tuple!(A QA B QB C QC D QD E QE F QF G QG H QH I QI J QJ);
tuple!(A QA B QB C QC D QD E QE F QF G QG H QH I QI J QJ K QK);
tuple!(A QA B QB C QC D QD E QE F QF G QG H QH I QI J QJ K QK L QL);

/// Makes your own types usable as record keys and as the parts of an index; see the
/// [module](crate::parts#a-type-of-your-own).
///
/// `impl_parts!(Isbn as u64)` declares that an `Isbn` is packed like a `u64`, or like a tuple of
/// one `u64`. `impl_parts!(Batch as (String, u32))` declares that a `Batch` is packed like this
/// tuple. A schema stores the declared types with the name of your type, and refuses a program that
/// declares others ([`KeyShape`]). The declaration must match the implementation of [`Pack`], so
/// change both together.
///
/// The types must be [`Pack`] and [`Unpack`](keyloom::Unpack) without borrowing. A query passes
/// such a value as a whole, alone or as one part in a tuple.
#[macro_export]
macro_rules! impl_parts {
    ($($type:ty as $parts:ty),+ $(,)?) => {$(
        impl $crate::parts::Parts for $type {
            type Owned = Self;
            type Borrowed<'k> = Self;
            type First = Self;
        }
        impl $crate::parts::KeyShape for $type {
            fn key_shape() -> String {
                $crate::parts::delegates_to::<Self, $parts>()
            }
        }
        impl $crate::parts::PackAs<$type> for $type {}
        impl $crate::parts::PrefixOf<$type> for $type {}
    )+};
}
