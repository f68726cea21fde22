//! Descending order of one element.

use smallvec::SmallVec;

use super::code;
use super::scalars::one_element;
use super::{DecodeError, DecodeErrorKind, Pack, Packer, Type, Unpack, Unpacker};

/// An element that sorts in descending order: newest first, highest score first.
///
/// ```
/// use keyloom::key::{Desc, pack, unpack};
/// let newer = pack(&("log", Desc(1_700_000_001_u64), "b"));
/// let older = pack(&("log", Desc(1_700_000_000_u64), "a"));
/// assert!(newer < older);
/// assert_eq!(unpack::<(&str, Desc<u64>, &str)>(&newer)?, ("log", Desc(1_700_000_001), "b"));
/// # Ok::<(), keyloom::key::DecodeError>(())
/// ```
///
/// # Layout
///
/// `40`, then the complemented encoding, then `FF FF`. Let `E` be the element's own encoding (as
/// the only element of a top-level tuple). Every byte of `E` is complemented. Where `E` has a `00`,
/// its complement `FF` is followed by an escape byte `00`.
///
/// | value | `E` | bytes |
/// |---|---|---|
/// | `Desc(1)` | `15 01` | `40 EA FE FF FF` |
/// | `Desc("a")` | `02 61 00` | `40 FD 9E FF 00 FF FF` |
///
/// # Why this reverses the order
///
/// The complement alone does not reverse the order. Encodings are not prefix-free at the end of a
/// key: `"a"` is `02 61 00`, and `"a\0"` is `02 61 00 FF 00`. If both are complemented, the longer
/// one still sorts after its prefix. Let `E < F` be two encodings and `e`, `f` their forms above.
///
/// * Case 1: at the first difference, `E` has a byte `x` and `F` a byte `y`, with `x < y`. Then `e`
///   and `f` are equal up to that byte, `e` continues with the complement of `x`, and `f` with the
///   smaller complement of `y`, so `f < e`. The escape preserves this order: it only follows a
///   complement that is itself `FF`.
/// * Case 2: `E` is a prefix of `F`. Then `e` ends with `FF FF` where `f` continues with the
///   complement of a byte. This complement is either below `FF`, or `FF 00`. Both are less than `FF
///   FF`, so `f < e`.
///
/// Since `FF FF` occurs nowhere else, no form is a prefix of another. So the element alone decides
/// the order, whatever follows it.
///
/// # Cost
///
/// Three bytes, one more for each `00` in `E`, and a buffer, which is on the stack for elements of
/// up to 64 bytes. The unpacked value owns its data: `Desc<String>`, not `Desc<&str>`. A `Desc`
/// within a `Desc` is possible, but the escapes are then escaped again: each further level makes
/// the element up to 1.6 times as long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Desc<T>(pub T);

/// The reverse of the order of `T`, as in the key.
impl<T: Ord> Ord for Desc<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.0.cmp(&self.0)
    }
}

impl<T: PartialOrd> PartialOrd for Desc<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        other.0.partial_cmp(&self.0)
    }
}

impl<T: Pack> Pack for Desc<T> {
    #[inline]
    fn pack(&self, out: &mut Packer) {
        let mut content = Packer::new();
        self.0.pack_element(&mut content);
        out.byte(code::DESC);
        for byte in content.as_bytes() {
            out.byte(!byte);
            if *byte == 0x00 {
                out.byte(0x00);
            }
        }
        out.coded(0xFF, [0xFF], 1);
    }
    one_element!(pack);
}

impl<'k, T: for<'c> Unpack<'c>> Unpack<'k> for Desc<T> {
    #[inline]
    fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
        input.reversed(|content| {
            let value = T::unpack_element(content)?;
            content.finish()?;
            Ok(Self(value))
        })
    }
    one_element!(unpack);
}

impl Unpacker<'_> {
    /// Reads a descending element. `read` decodes its content, which is the encoding in ascending
    /// order.
    pub(super) fn reversed<T>(
        &mut self,
        read: impl FnOnce(&mut Unpacker<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let start = self.offset();
        self.expect(code::DESC, Type::Desc)?;
        let content = self.complemented(start)?;
        self.deeper(|input| read(&mut input.inside(&content))).map_err(|error| DecodeError {
            offset: start + 1 + complemented_len(&content, error.offset),
            kind: error.kind,
        })
    }

    fn complemented(&mut self, start: usize) -> Result<SmallVec<[u8; 64]>, DecodeError> {
        let mut content = SmallVec::new();
        let mut rest = self.rest();
        loop {
            rest = match rest {
                [0xFF, 0xFF, ..] => {
                    self.advance(2);
                    return Ok(content);
                }
                [0xFF, 0x00, after @ ..] => {
                    content.push(0x00);
                    self.advance(2);
                    after
                }
                [0xFF, found, ..] => {
                    return Err(self.error(DecodeErrorKind::BadEscape { found: *found }));
                }
                [] | [0xFF] => {
                    return Err(
                        self.error_at(start, DecodeErrorKind::Truncated { within: Type::Desc })
                    );
                }
                [byte, after @ ..] => {
                    content.push(!byte);
                    self.advance(1);
                    after
                }
            }
        }
    }
}

/// The number of bytes in the key for the first `len` bytes of a descending element's content.
#[cold]
fn complemented_len(content: &[u8], len: usize) -> usize {
    len + content.iter().take(len).filter(|&&byte| byte == 0x00).count()
}
