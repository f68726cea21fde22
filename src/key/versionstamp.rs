//! Versionstamps.

use std::fmt;

use super::code;
use super::{DecodeError, Pack, Packer, Type, Unpack, Unpacker};

/// The version of a committed transaction: ten bytes that a distributed store assigns, and two
/// bytes that number the writes within the transaction.
///
/// ```
/// use keyloom::key::{Versionstamp, pack};
/// let stamp = Versionstamp::new([0, 0, 0, 0, 0, 0, 0, 7, 0, 1], 2);
/// assert_eq!(&pack(&stamp)[..], b"\x33\0\0\0\0\0\0\0\x07\0\x01\0\x02");
/// assert!(stamp < Versionstamp::new([0, 0, 0, 0, 0, 0, 0, 7, 0, 1], 3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Versionstamp(pub [u8; 12]);

impl Versionstamp {
    /// A stamp from the transaction's version and the number of the write.
    pub fn new(transaction: [u8; 10], user: u16) -> Self {
        let [t0, t1, t2, t3, t4, t5, t6, t7, t8, t9] = transaction;
        let [u0, u1] = user.to_be_bytes();
        Self([t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, u0, u1])
    }

    /// The byte before a versionstamp in a tuple.
    pub const TYPE_CODE: u8 = code::VERSIONSTAMP;

    /// The stamp number `count` of a store that assigns stamps from a counter.
    pub(crate) fn of_a_counter(count: i64) -> Self {
        let [c0, c1, c2, c3, c4, c5, c6, c7] = count.to_be_bytes();
        Self::new([c0, c1, c2, c3, c4, c5, c6, c7, 0, 0], 0)
    }
}

impl fmt::Display for Versionstamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("versionstamp(")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

impl Pack for Versionstamp {
    #[inline]
    fn pack(&self, out: &mut Packer) {
        out.coded(code::VERSIONSTAMP, self.0, 12);
    }

    #[inline]
    fn pack_element(&self, out: &mut Packer) {
        self.pack(out);
    }
}

impl<'k> Unpack<'k> for Versionstamp {
    #[inline]
    fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
        input.expect(code::VERSIONSTAMP, Type::Versionstamp)?;
        input.array(Type::Versionstamp).map(Self)
    }

    #[inline]
    fn unpack_element(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
        Self::unpack(input)
    }
}
