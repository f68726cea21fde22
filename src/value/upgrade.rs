//! Versions of a record type, with a function from each version to the next one.
//!
//! *How does a program read the records that its earlier versions wrote?* Keep the earlier type,
//! and implement [`Upgrade`] for the new one. The codec [`Upgrading`] reads records of all versions
//! as the newest type, and writes the newest version.
//!
//! ```
//! use keyloom::BoxedError;
//! use keyloom::value::{Codec, Plain, Postcard, Upgrade, Upgrading};
//! use serde::{Deserialize, Serialize};
//!
//! /// As the first program wrote it, with the codec Postcard.
//! #[derive(Serialize, Deserialize)]
//! struct TicketV1 { title: String }
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! struct Ticket { title: String, priority: u8 }
//!
//! impl Upgrade for Ticket {
//!     const VERSION: u8 = 2;
//!     type From = Plain<TicketV1>;
//!     fn upgrade(old: TicketV1) -> Result<Self, BoxedError> {
//!         Ok(Self { title: old.title, priority: 3 })
//!     }
//! }
//!
//! let mut old = Vec::new();
//! <Postcard as Codec<TicketV1>>::encode(&TicketV1 { title: "no tea".into() }, &mut old)?;
//! let ticket: Ticket = Upgrading::<Postcard>::decode(&old)?;
//! assert_eq!(ticket, Ticket { title: "no tea".into(), priority: 3 });
//!
//! let mut new = Vec::new();
//! Upgrading::<Postcard>::encode(&ticket, &mut new)?;
//! assert_eq!(new.last(), Some(&2), "the version");
//! assert!(<Postcard as Codec<TicketV1>>::decode(&new).is_err(), "never misread");
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Bytes
//!
//! A record consists of the bytes of the value, and one byte with the version after them. Records
//! that were written before the type had versions have no version byte: they are [`Plain`]. The
//! codec first reads a record as the plain type, and if this succeeds, the record is plain. For
//! some values, a record with a version could also be read as the plain type. Such a record is
//! written with one more byte, 255, after its version. Its bytes are then a plain value with an
//! extra byte, which each codec of keyloom refuses. The alternative, a version in the first byte,
//! would be ambiguous for most types.
//!
//! A program that has only the plain type cannot misread a record with a version: decoding returns
//! an error, never another value. This holds for records of writers that have the plain type as an
//! earlier version. A writer without the plain type ([`Nothing`]) cannot rule out that its bytes
//! decode as that type, because each string of bytes is a value of some type, for example of a
//! tuple of bytes. So stop all programs with the plain type before the first program without it
//! starts. A schema then refuses the writes and the declarations of old programs, but it cannot
//! refuse the reads of old programs that still run.
//!
//! # Cost
//!
//! One byte per record. While the oldest type is [`Plain`], each read and each write also tries to
//! read the plain type, which takes as long as reading a plain record. To avoid this cost, rewrite
//! the records, and then replace the plain type by [`Nothing`].

use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::proven::{self, Format};
use super::shape::{FieldsBy, Shape, of_known};
use super::{Codec, failed};
use crate::{BoxedError, Error, Result};

/// The greatest version.
pub const MAX_VERSION: u8 = 250;
/// The byte after the version of a record that would otherwise be read as a plain record.
const PAD: u8 = u8::MAX;

/// A record type that replaces an earlier one; see the [module](self).
///
/// Versions must ascend: a version that is not greater than the previous one does not compile.
///
/// ```compile_fail,E0080
/// # use keyloom::BoxedError;
/// # use keyloom::value::{Codec, Nothing, Postcard, Upgrade, Upgrading};
/// # use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize)]
/// struct One(u8);
/// impl Upgrade for One {
///     const VERSION: u8 = 5;
///     type From = Nothing;
///     fn upgrade(old: Nothing) -> Result<Self, BoxedError> { match old {} }
/// }
/// #[derive(Serialize, Deserialize)]
/// struct Two(u16);
/// impl Upgrade for Two {
///     const VERSION: u8 = 5; // not 6
///     type From = One;
///     fn upgrade(old: One) -> Result<Self, BoxedError> { Ok(Self(old.0.into())) }
/// }
/// let read: keyloom::Result<Two> = Upgrading::<Postcard>::decode(&[7, 5]);
/// ```
pub trait Upgrade: Serialize + DeserializeOwned + 'static {
    /// The number of this version: 1 to 250, and greater than the number of
    /// [`From`](Upgrade::From). In a schema, this is the version of the table.
    const VERSION: u8;

    /// The version before this one: another type with `Upgrade`; [`Plain`] for records without a
    /// version; [`Nothing`] if no earlier records exist.
    type From: Older;

    /// Converts a record of the previous version to this version. The result must depend only on
    /// the record: derived data is computed from the result, again at each read.
    ///
    /// # Errors
    /// An error of your choice, if the record cannot be converted. The record then cannot be read,
    /// and the store keeps it unchanged.
    fn upgrade(old: <Self::From as Older>::Record) -> Result<Self, BoxedError>;
}

/// A version that precedes another one, with all versions before it. Implemented for each type with
/// [`Upgrade`], for [`Plain`] and for [`Nothing`].
// The functions are hidden, because only codecs call them, in the order that the codecs need.
pub trait Older {
    /// The record type.
    type Record;
    /// The number of the version; 0 for plain records.
    #[doc(hidden)]
    const NUMBER: u8;

    /// Reads a record of this version or an earlier one. Returns `None` for a version without an
    /// upgrade.
    #[doc(hidden)]
    fn read<F: Format>(number: u8, bytes: &[u8]) -> Result<Option<Self::Record>, BoxedError>;

    /// Whether a record may be plain, which must be tried first.
    #[doc(hidden)]
    const MAY_BE_PLAIN: bool;

    /// Reads a plain record. Returns `None` if the bytes are not a plain record.
    #[doc(hidden)]
    fn read_plain<F: Format>(bytes: &[u8]) -> Result<Option<Self::Record>, BoxedError>;

    /// Whether the bytes decode as a plain record.
    #[doc(hidden)]
    fn is_plain<F: Format>(bytes: &[u8]) -> bool;

    /// Adds the shapes of this version and of all earlier versions.
    #[doc(hidden)]
    fn add_shapes<F: Format>(shapes: &mut Vec<(u8, Shape)>) -> Result<()>;
}

/// Records of the type `T` without a version. A table contains such records if it was declared with
/// a codec such as [`Postcard`](super::Postcard) before its type had versions.
#[derive(Clone, Copy, Debug)]
pub struct Plain<T>(PhantomData<fn() -> T>);

/// No earlier records: the predecessor of the first version, or of the oldest version that still
/// occurs.
#[derive(Clone, Copy, Debug)]
pub enum Nothing {}

impl<T: Upgrade> Older for T {
    type Record = Self;
    const NUMBER: u8 = T::VERSION;
    const MAY_BE_PLAIN: bool = T::From::MAY_BE_PLAIN;

    fn read<F: Format>(number: u8, bytes: &[u8]) -> Result<Option<Self>, BoxedError> {
        if number == T::VERSION {
            return F::read(bytes).map(Some);
        }
        T::From::read::<F>(number, bytes)?.map(T::upgrade).transpose()
    }

    fn read_plain<F: Format>(bytes: &[u8]) -> Result<Option<Self>, BoxedError> {
        T::From::read_plain::<F>(bytes)?.map(T::upgrade).transpose()
    }

    fn is_plain<F: Format>(bytes: &[u8]) -> bool {
        T::From::is_plain::<F>(bytes)
    }

    fn add_shapes<F: Format>(shapes: &mut Vec<(u8, Shape)>) -> Result<()> {
        T::From::add_shapes::<F>(shapes)?;
        shapes.push((T::VERSION, shape_of::<F, T>()?));
        Ok(())
    }
}

impl<T: Serialize + DeserializeOwned> Older for Plain<T> {
    type Record = T;
    const NUMBER: u8 = 0;
    const MAY_BE_PLAIN: bool = true;

    fn read<F: Format>(_: u8, _: &[u8]) -> Result<Option<T>, BoxedError> {
        Ok(None)
    }

    fn read_plain<F: Format>(bytes: &[u8]) -> Result<Option<T>, BoxedError> {
        Ok(F::read(bytes).ok())
    }

    fn is_plain<F: Format>(bytes: &[u8]) -> bool {
        F::read::<T>(bytes).is_ok()
    }

    fn add_shapes<F: Format>(shapes: &mut Vec<(u8, Shape)>) -> Result<()> {
        shapes.push((0, shape_of::<F, T>()?));
        Ok(())
    }
}

impl Older for Nothing {
    type Record = Self;
    const NUMBER: u8 = 0;
    const MAY_BE_PLAIN: bool = false;

    fn read<F: Format>(_: u8, _: &[u8]) -> Result<Option<Self>, BoxedError> {
        Ok(None)
    }

    fn read_plain<F: Format>(_: &[u8]) -> Result<Option<Self>, BoxedError> {
        Ok(None)
    }

    fn is_plain<F: Format>(_: &[u8]) -> bool {
        false
    }

    fn add_shapes<F: Format>(_: &mut Vec<(u8, Shape)>) -> Result<()> {
        Ok(())
    }
}

fn shape_of<F: Format, T: DeserializeOwned>() -> Result<Shape> {
    let by = if F::IS_BY_POSITION { FieldsBy::Position } else { FieldsBy::Name };
    of_known::<T>(by, F::IS_HUMAN_READABLE)
}

/// The codec of a type with [versions](self). Reads records of all versions, and writes the newest
/// version. `C` is [`Postcard`](super::Postcard), [`Json`](super::Json) or
/// [`MessagePack`](super::MessagePack).
#[derive(Clone, Copy, Default)]
pub struct Upgrading<C>(PhantomData<C>);

impl<C> fmt::Debug for Upgrading<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upgrading")
    }
}

/// The error of a record that no version of the program can read.
#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error("it is empty")]
    Empty,
    #[error("it ends with {0}, which is no version")]
    NoVersion(u8),
    #[error(
        "it has version {0}, from which this program has no upgrade; add it to the versions again"
    )]
    NoUpgrade(u8),
}

/// Splits a record into the bytes of the value and the version.
fn split(bytes: &[u8]) -> Result<(&[u8], u8), Unreadable> {
    let (last, rest) = bytes.split_last().ok_or(Unreadable::Empty)?;
    let (number, rest) = match *last {
        PAD => rest.split_last().ok_or(Unreadable::Empty)?,
        _ => (last, rest),
    };
    match *number {
        1..=MAX_VERSION => Ok((rest, *number)),
        other => Err(Unreadable::NoVersion(other)),
    }
}

impl<C: Format> Upgrading<C> {
    fn read<V: Upgrade>(bytes: &[u8]) -> Result<V, BoxedError> {
        if let Some(old) = V::read_plain::<C>(bytes)? {
            return Ok(old);
        }
        let (value, number) = split(bytes)?;
        if number > V::VERSION {
            let (found, supported) = (number.into(), V::VERSION.into());
            return Err(Error::NewerFormat { what: "a record".into(), found, supported }.into());
        }
        let read = V::read::<C>(number, value)?;
        Ok(read.ok_or(Unreadable::NoUpgrade(number))?)
    }
}

impl<C: Format, V: Upgrade> Codec<V> for Upgrading<C> {
    fn encode(value: &V, out: &mut Vec<u8>) -> Result<()> {
        const { assert_ascends::<V>() };
        let before = out.len();
        proven::write::<C, V>(value, out)?;
        out.push(V::VERSION);
        if V::From::is_plain::<C>(out.get(before..).unwrap_or_default()) {
            out.push(PAD);
        }
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<V> {
        const { assert_ascends::<V>() };
        match bytes.split_last() {
            // Same result as the general case, without moving the value from result to result.
            Some((number, value)) if *number == V::VERSION && !V::From::MAY_BE_PLAIN => {
                C::read(value).map_err(undecodable)
            }
            _ => Self::read(bytes).map_err(undecodable),
        }
    }

    fn shape() -> Result<Shape> {
        let mut shapes = Vec::new();
        V::add_shapes::<C>(&mut shapes)?;
        Ok(Shape::versions(shapes))
    }

    fn version() -> Option<u8> {
        Some(V::VERSION)
    }

    fn is_current(bytes: &[u8]) -> bool {
        !V::From::is_plain::<C>(bytes) && split(bytes).is_ok_and(|(_, number)| number == V::VERSION)
    }
}

#[cold]
fn undecodable(error: BoxedError) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => *error,
        Err(error) => failed("versions of a record", "decode")(error),
    }
}

const fn assert_ascends<V: Upgrade>() {
    assert!(V::VERSION >= 1 && V::VERSION <= MAX_VERSION, "the version of a record is 1 to 250");
    assert!(V::VERSION > V::From::NUMBER, "the version of a record is greater than the one before");
}
