//! Varints: integers of seven bits per byte, lowest bits first.

pub(super) fn write(mut integer: u32, out: &mut Vec<u8>) {
    while integer >= 0x80 {
        out.push(integer as u8 | 0x80);
        integer >>= 7;
    }
    out.push(integer as u8);
}

/// Reads a varint from the beginning of `bytes`, and advances `bytes`; `None` if there is no valid
/// 32-bit varint.
#[inline]
pub(super) fn take(bytes: &mut &[u8]) -> Option<u32> {
    let mut integer = 0_u64;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        integer |= u64::from(byte & 0x7F) << shift;
        if *byte < 0x80 {
            return u32::try_from(integer).ok();
        }
    }
    None
}
