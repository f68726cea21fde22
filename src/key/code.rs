//! The type codes, in their order.

pub(super) const NULL: u8 = 0x00;
pub(super) const BYTES: u8 = 0x01;
pub(super) const STRING: u8 = 0x02;
pub(super) const TUPLE: u8 = 0x05;
pub(super) const BIG_NEGATIVE: u8 = 0x0B;
pub(super) const ZERO: u8 = 0x14;
pub(super) const BIG_POSITIVE: u8 = 0x1D;
pub(super) const F32: u8 = 0x20;
pub(super) const F64: u8 = 0x21;
pub(super) const FALSE: u8 = 0x26;
pub(super) const TRUE: u8 = 0x27;
pub(super) const UUID: u8 = 0x30;
pub(super) const VERSIONSTAMP: u8 = 0x33;
/// The first of the sixteen codes that the specification leaves to users.
pub(super) const DESC: u8 = 0x40;

/// Ends a string, bytes or a nested tuple.
pub(super) const END: u8 = 0x00;
/// Follows a `00` that is a literal byte and not an end.
pub(super) const ESCAPE: u8 = 0xFF;
