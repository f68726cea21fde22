//! Versions of a record type, with a function from each to the next one.
//!
//! *How does a program read the records that its earlier versions wrote?* Keep the earlier type,
//! and implement [`Upgrade`] for the new one. The codec [`Upgrading`] reads records of all versions
//! as the newest, and writes the newest.
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
//! The bytes of the value, and its version in one byte after them. Records that were written before
//! the type had versions have no such byte: they are [`Plain`]. The codec first reads a record as
//! the plain type, and if this succeeds, the record is plain. For some values this would also
//! succeed for a record with a version. Such a record is written with one more byte, 255, after its
//! version. Then its bytes are a plain value and a byte after its end, which each codec of keyloom
//! refuses. The alternative, a version in the first byte, would be ambiguous for most types.
//!
//! A program that has only the plain type does not read a record with a version: it gets an error,
//! never another value. This holds for records of writers that know the plain type. A writer
//! without it ([`Nothing`]) cannot write bytes that no plain type reads, because each string of
//! bytes is a value of some type, if only of a tuple of as many bytes. So stop the programs that
//! know the plain type before the first one without it starts. A schema then refuses their writes
//! and their declarations; the reads of those that still run it cannot refuse.
//!
//! # Cost
//!
//! One byte per record. While the oldest type is [`Plain`], each read and write tries to read the
//! plain type first, which takes as long as reading one. Rewrite the records to avoid that.

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
/// After the version of a record that would be read as a plain one otherwise.
const PAD: u8 = u8::MAX;

/// A record type that replaces an earlier one; see the [module](self).
///
/// Versions ascend: one that is not greater than the one before does not compile.
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
    /// The number of this version: 1 to 250, greater than that of [`From`](Upgrade::From). In a
    /// schema it is the version of the table.
    const VERSION: u8;

    /// The version before this one: another type with `Upgrade`; [`Plain`] for records without a
    /// version; [`Nothing`] if no earlier records exist.
    type From: Older;

    /// This version of a record of the one before. It must depend on the record alone: derived data
    /// is computed from the result, each time that it is read.
    ///
    /// # Errors
    /// If there is no such record. Then it cannot be read, and is kept as it is.
    fn upgrade(old: <Self::From as Older>::Record) -> Result<Self, BoxedError>;
}

/// The version before another one, and all before it. Implemented for each type with [`Upgrade`],
/// for [`Plain`] and for [`Nothing`].
// Its functions are hidden: codecs alone call them, in the order that they need.
pub trait Older {
    /// The record type.
    type Record;
    /// The number of the version, 0 for a plain one.
    #[doc(hidden)]
    const NUMBER: u8;

    /// Reads a record of this version or an earlier one; `None` for one without an upgrade.
    #[doc(hidden)]
    fn read<F: Format>(number: u8, bytes: &[u8]) -> Result<Option<Self::Record>, BoxedError>;

    /// Whether a record may be a plain one, which has to be tried first.
    #[doc(hidden)]
    const MAY_BE_PLAIN: bool;

    /// Reads a plain record; `None` if it is none.
    #[doc(hidden)]
    fn read_plain<F: Format>(bytes: &[u8]) -> Result<Option<Self::Record>, BoxedError>;

    /// Whether a plain record has these bytes.
    #[doc(hidden)]
    fn is_plain<F: Format>(bytes: &[u8]) -> bool;

    /// Adds the shapes of this version and those before it.
    #[doc(hidden)]
    fn add_shapes<F: Format>(shapes: &mut Vec<(u8, Shape)>) -> Result<()>;
}

/// Records of the type `T` that have no version: those of a table that was declared with a codec
/// such as [`Postcard`](super::Postcard) before its type had versions.
#[derive(Clone, Copy, Debug)]
pub struct Plain<T>(PhantomData<fn() -> T>);

/// No earlier records: the version before the first, or before the oldest that still exists.
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

/// The codec of a type with [versions](self): reads records of all versions, and writes the newest.
/// `C` is [`Postcard`](super::Postcard), [`Json`](super::Json) or
/// [`MessagePack`](super::MessagePack).
#[derive(Clone, Copy, Default)]
pub struct Upgrading<C>(PhantomData<C>);

impl<C> fmt::Debug for Upgrading<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upgrading")
    }
}

/// No version of the program reads a record.
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

/// The bytes of a value, and its version.
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
            // What the general case comes to, without moving the value from result to result.
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
