//! Elements whose type is known only at run time.

use std::borrow::Cow;
use std::cmp::Ordering;

use uuid::Uuid;

use super::code;
use super::scalars::one_element;
use super::{
    BigInt, DecodeError, DecodeErrorKind, Desc, List, Pack, Packer, Type, Unpack, Unpacker,
    Versionstamp, unpack,
};

/// One element of a key, of any type: for tools that work on keys without a schema.
///
/// ```
/// use keyloom::key::{Element, elements, pack};
/// let key = pack(&("users", 42, None::<u8>));
/// let found = elements(&key)?;
/// assert_eq!(found, [Element::from("users"), Element::from(42), Element::Null]);
/// assert_eq!(found[1].to_string(), "42");
/// # Ok::<(), keyloom::key::DecodeError>(())
/// ```
///
/// An `Element` always packs as one element: a [`Tuple`](Element::Tuple) becomes a nested tuple,
/// even at the top level. To pack a sequence of elements as a key, use a [`List`].
///
/// # Order
///
/// Elements sort by value, and packed elements sort in the same order. Elements of different types
/// sort by type: null, bytes, strings, tuples, integers, `f32`, `f64`, booleans, UUIDs,
/// versionstamps, descending. Numbers of different types do not mix: `2` sorts before `1.0_f32`,
/// which sorts before `0.0_f64`. Floats are in total order (`-0.0` before `0.0`, NaNs at the ends),
/// and are equal exactly if their bits are equal.
#[derive(Clone, Debug)]
pub enum Element {
    /// No value.
    Null,
    /// Bytes.
    Bytes(Vec<u8>),
    /// A string.
    Str(String),
    /// A nested tuple.
    Tuple(Vec<Element>),
    /// An integer.
    Int(i128),
    /// An integer that may be too large for [`Element::Int`]. If the integer fits, it is equal to
    /// the [`Element::Int`] of the same value.
    BigInt(BigInt),
    /// A float of four bytes.
    F32(f32),
    /// A float of eight bytes.
    F64(f64),
    /// A boolean.
    Bool(bool),
    /// A UUID.
    Uuid(Uuid),
    /// The version of a transaction.
    Versionstamp(Versionstamp),
    /// An element in descending order.
    Desc(Box<Element>),
}

/// Unpacks a key into its elements, whatever their types.
///
/// # Errors
/// [`DecodeError`] if the bytes are not a packed tuple.
pub fn elements(bytes: &[u8]) -> Result<Vec<Element>, DecodeError> {
    unpack::<List<Vec<Element>>>(bytes).map(|list| list.0)
}

impl Element {
    /// The rank of the element's type in the order of types.
    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bytes(_) => 1,
            Self::Str(_) => 2,
            Self::Tuple(_) => 3,
            Self::Int(_) | Self::BigInt(_) => 4,
            Self::F32(_) => 5,
            Self::F64(_) => 6,
            Self::Bool(_) => 7,
            Self::Uuid(_) => 8,
            Self::Versionstamp(_) => 9,
            Self::Desc(_) => 10,
        }
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bytes(a), Self::Bytes(b)) => a.cmp(b),
            (Self::Str(a), Self::Str(b)) => a.cmp(b),
            (Self::Tuple(a), Self::Tuple(b)) => a.cmp(b),
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Int(a), Self::BigInt(b)) => BigInt::from(*a).cmp(b),
            (Self::BigInt(a), Self::Int(b)) => a.cmp(&BigInt::from(*b)),
            (Self::BigInt(a), Self::BigInt(b)) => a.cmp(b),
            (Self::F32(a), Self::F32(b)) => a.total_cmp(b),
            (Self::F64(a), Self::F64(b)) => a.total_cmp(b),
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Uuid(a), Self::Uuid(b)) => a.cmp(b),
            (Self::Versionstamp(a), Self::Versionstamp(b)) => a.cmp(b),
            (Self::Desc(a), Self::Desc(b)) => b.cmp(a),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Element {}

impl Pack for Element {
    fn pack(&self, out: &mut Packer) {
        match self {
            Self::Null => out.null(),
            Self::Bytes(bytes) => bytes.pack(out),
            Self::Str(text) => text.pack(out),
            Self::Tuple(elements) => List(elements.as_slice()).pack_element(out),
            Self::Int(value) => value.pack(out),
            Self::BigInt(value) => value.pack(out),
            Self::F32(value) => value.pack(out),
            Self::F64(value) => value.pack(out),
            Self::Bool(value) => value.pack(out),
            Self::Uuid(value) => value.pack(out),
            Self::Versionstamp(value) => value.pack(out),
            Self::Desc(element) => Desc(&**element).pack(out),
        }
    }
    one_element!(pack);
}

impl<'k> Unpack<'k> for Element {
    fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
        if input.null() {
            return Ok(Self::Null);
        }
        match input.peek().filter(|_| !input.is_at_end()) {
            Some(code::BYTES) => Unpack::unpack(input).map(Self::Bytes),
            Some(code::STRING) => Unpack::unpack(input).map(Self::Str),
            Some(code::TUPLE) => {
                input.nested(|input| List::unpack(input).map(|list| Self::Tuple(list.0)))
            }
            Some(code::BIG_NEGATIVE..=code::BIG_POSITIVE) => {
                input.integer().map(|integer| integer.into_element())
            }
            Some(code::F32) => Unpack::unpack(input).map(Self::F32),
            Some(code::F64) => Unpack::unpack(input).map(Self::F64),
            Some(code::FALSE | code::TRUE) => Unpack::unpack(input).map(Self::Bool),
            Some(code::UUID) => Unpack::unpack(input).map(Self::Uuid),
            Some(code::VERSIONSTAMP) => Unpack::unpack(input).map(Self::Versionstamp),
            Some(code::DESC) => Desc::unpack(input).map(|desc| Self::Desc(Box::new(desc.0))),
            Some(found) => Err(input.error(DecodeErrorKind::UnknownCode { found })),
            None => Err(input.unexpected(Type::Any)),
        }
    }
    one_element!(unpack);
}

macro_rules! from {
    ($($type:ty: |$value:ident| $element:expr;)+) => {$(
        impl From<$type> for Element {
            fn from($value: $type) -> Self {
                $element
            }
        }
    )+};
}

from! {
    &str: |text| Self::Str(text.to_owned());
    String: |text| Self::Str(text);
    Cow<'_, str>: |text| Self::Str(text.into_owned());
    &[u8]: |bytes| Self::Bytes(bytes.to_vec());
    Vec<u8>: |bytes| Self::Bytes(bytes);
    Vec<Element>: |elements| Self::Tuple(elements);
    i32: |value| Self::Int(value.into());
    u32: |value| Self::Int(value.into());
    i64: |value| Self::Int(value.into());
    u64: |value| Self::Int(value.into());
    i128: |value| Self::Int(value);
    BigInt: |value| Self::BigInt(value);
    f32: |value| Self::F32(value);
    f64: |value| Self::F64(value);
    bool: |value| Self::Bool(value);
    Uuid: |value| Self::Uuid(value);
    Versionstamp: |value| Self::Versionstamp(value);
}

impl<T: Into<Element>> From<Option<T>> for Element {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<T: Into<Element>> From<Desc<T>> for Element {
    fn from(value: Desc<T>) -> Self {
        Self::Desc(Box::new(value.0.into()))
    }
}
