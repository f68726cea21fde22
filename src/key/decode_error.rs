//! The errors of decoding a key.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use super::Element;

/// The error for bytes that do not decode as a key, with the position in the bytes.
///
/// ```
/// use keyloom::key::{pack, unpack};
/// let error = unpack::<(&str, u8)>(&pack(&("id", 300))).unwrap_err();
/// assert_eq!(error.to_string(), "at byte 4: the integer 300 does not fit in a u8");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The position of the invalid byte, or of the beginning of the element.
    pub offset: usize,
    pub(super) kind: DecodeErrorKind,
}

/// The kinds of decoding errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DecodeErrorKind {
    /// The key ends inside an element. The key was truncated, or is not a tuple.
    Truncated {
        /// The element that was being read.
        within: Type,
    },
    /// The tuple ends where another element was expected.
    Missing {
        /// The type that was expected.
        wanted: Type,
    },
    /// The type of the element differs from the expected type.
    Unexpected {
        /// The type code of the element.
        found: u8,
        /// The type that was expected.
        wanted: Type,
    },
    /// The tuple continues after the last expected element.
    Trailing {
        /// The type code of the next element.
        found: u8,
    },
    /// No element that keyloom supports begins with this byte. The byte is not a type code, or is
    /// one that the bindings no longer write, that keyloom does not support, or that another
    /// program uses.
    UnknownCode {
        /// The byte.
        found: u8,
    },
    /// The integer is outside the range of the requested type. Use a wider type.
    OutOfRange(Box<OutOfRange>),
    /// The length of the bytes differs from the length of the requested array.
    WrongLength {
        /// The number of bytes in the key.
        found: u32,
        /// The number of bytes expected.
        wanted: u32,
    },
    /// A string is not UTF-8.
    NotUtf8,
    /// A string or bytes with a NUL cannot be borrowed from the key, because the key contains the
    /// NUL in escaped form. Decode the element as a `Cow`, `String` or `Vec<u8>`.
    CannotBorrow {
        /// String or bytes.
        what: Type,
    },
    /// Inside a [`Desc`](super::Desc), an `FF` is followed by neither `00` nor `FF`.
    BadEscape {
        /// The byte that follows the `FF`.
        found: u8,
    },
    /// A long integer begins with a length byte that no binding writes.
    BadLength {
        /// The length.
        found: u8,
    },
    /// Tuples are nested deeper than [`MAX_DEPTH`](super::MAX_DEPTH). No storable key is nested
    /// that deep.
    TooDeep,
    /// [`unpack_strict`](super::unpack_strict) found an integer that is not in its shortest form.
    NotShortest,
    /// The key is not in the subspace.
    OutsideSubspace(Box<OutsideSubspace>),
    /// The error of a type of the program, from [`Unpacker::refuse`](super::Unpacker::refuse).
    Refused(Box<Cow<'static, str>>),
}

/// An integer and the type whose range it exceeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutOfRange {
    /// The integer: an [`Element::Int`] or [`Element::BigInt`].
    pub value: Element,
    /// The name of the type.
    pub target: &'static str,
}

/// A key and the subspace that does not contain the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutsideSubspace {
    /// The key, as [`display`](super::display) shows it.
    pub key: Box<str>,
    /// The prefix of the subspace, in the same form.
    pub subspace: Box<str>,
}

/// The types of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Type {
    Any,
    Null,
    Bytes,
    String,
    Tuple,
    Integer,
    F32,
    F64,
    Bool,
    Uuid,
    Versionstamp,
    Desc,
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "an element",
            Self::Null => "a null",
            Self::Bytes => "bytes",
            Self::String => "a string",
            Self::Tuple => "a nested tuple",
            Self::Integer => "an integer",
            Self::F32 => "an f32",
            Self::F64 => "an f64",
            Self::Bool => "a bool",
            Self::Uuid => "a UUID",
            Self::Versionstamp => "a versionstamp",
            Self::Desc => "a descending element",
        })
    }
}

impl Type {
    /// The type that begins with `code`, if keyloom supports one.
    pub(super) fn of(code: u8) -> Option<Self> {
        Some(match code {
            0x00 => Self::Null,
            0x01 => Self::Bytes,
            0x02 => Self::String,
            0x05 => Self::Tuple,
            0x0B..=0x1D => Self::Integer,
            0x20 => Self::F32,
            0x21 => Self::F64,
            0x26 | 0x27 => Self::Bool,
            0x30 => Self::Uuid,
            0x33 => Self::Versionstamp,
            0x40 => Self::Desc,
            _ => return None,
        })
    }
}

impl DecodeErrorKind {
    /// The error for an element that begins with `found` where `wanted` was expected.
    pub(super) fn unexpected(found: u8, wanted: Type) -> Self {
        match Type::of(found) {
            Some(_) => Self::Unexpected { found, wanted },
            None => Self::UnknownCode { found },
        }
    }
}

impl fmt::Display for DecodeErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { within } => write!(f, "the key ends inside {within}"),
            Self::Missing { wanted } => write!(f, "the tuple ends where {wanted} was expected"),
            Self::Unexpected { found, wanted } => match Type::of(*found) {
                Some(found) => write!(f, "found {found} where {wanted} was expected"),
                None => write!(f, "found code {found:02X} where {wanted} was expected"),
            },
            Self::Trailing { found } => match Type::of(*found) {
                Some(found) => {
                    write!(f, "the tuple continues with {found} where its end was expected")
                }
                None => {
                    write!(
                        f,
                        "the tuple continues with byte {found:02X} where its end was expected"
                    )
                }
            },
            Self::UnknownCode { found } => write!(f, "{} {found:02X}", describe_code(*found)),
            Self::OutOfRange(out) => {
                write!(f, "the integer {} does not fit in a {}", out.value, out.target)
            }
            Self::WrongLength { found, wanted } => {
                write!(f, "found {found} bytes where {wanted} were expected")
            }
            Self::NotUtf8 => f.write_str("the string is not UTF-8"),
            Self::CannotBorrow { what } => {
                let owned = if *what == Type::String {
                    "Cow<str> or String"
                } else {
                    "Cow<[u8]> or Vec<u8>"
                };
                write!(f, "{what} with a NUL cannot be borrowed from the key; decode it as {owned}")
            }
            Self::BadEscape { found } => {
                write!(f, "an FF is followed by {found:02X} inside a descending element")
            }
            Self::BadLength { found } => {
                write!(f, "{found} is not a valid length of a long integer")
            }
            Self::TooDeep => write!(f, "tuples are nested deeper than {}", super::MAX_DEPTH),
            Self::NotShortest => f.write_str("the integer is not in its shortest form"),
            Self::OutsideSubspace(outside) => {
                write!(f, "the key {} is not in the subspace {}", outside.key, outside.subspace)
            }
            Self::Refused(why) => f.write_str(why),
        }
    }
}

fn describe_code(code: u8) -> &'static str {
    match code {
        0x03 | 0x04 | 0x31 | 0x34 | 0x35 => "deprecated type code",
        0x22..=0x25 | 0x32 => "unsupported type code",
        0x40..=0x4F => "type code of another program",
        _ => "no element begins with byte",
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.kind)
    }
}

impl Error for DecodeError {}
