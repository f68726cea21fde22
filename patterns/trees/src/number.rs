//! Variable-length integers (varints) in LEB128.

/// Appends `number`: seven bits per byte, lowest first. All bytes except the last have their
/// highest bit set.
pub(crate) fn put(mut number: u64, out: &mut Vec<u8>) {
    while number > 0x7f {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Decodes the number at the beginning of `bytes` and removes it from `bytes`. Returns `None` if
/// the number is cut off or has more than 64 bits.
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0_u64, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if shift > 63 || bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_comes_back_and_takes_as_many_bytes_as_it_needs() {
        for (number, bytes) in [
            (0, 1),
            (127, 1),
            (128, 2),
            (16_383, 2),
            (16_384, 3),
            (u64::MAX >> 1, 9),
            (u64::MAX, 10),
        ] {
            let mut written = Vec::new();
            put(number, &mut written);
            assert_eq!(written.len(), bytes, "{number}");
            let mut rest = &written[..];
            assert_eq!((take(&mut rest), rest), (Some(number), &[][..]));
        }
    }

    #[test]
    fn what_is_cut_off_or_too_large_is_no_number() {
        assert_eq!(take(&mut &[][..]), None);
        assert_eq!(take(&mut &[0x80][..]), None);
        assert_eq!(take(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2][..]), None);
        assert_eq!(take(&mut &[0x80; 11][..]), None);
    }
}
