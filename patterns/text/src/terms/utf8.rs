//! The automaton of well-formed UTF-8.

/// The state: which bytes may come next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Utf8 {
    /// The first byte of a character.
    #[default]
    First,
    /// The last byte.
    Last,
    /// Any byte before the last one.
    BeforeLast,
    /// The second byte of a character, which is restricted to a narrower range; the remaining bytes
    /// follow.
    Second { least: u8, most: u8, is_of_three: bool },
}

impl Utf8 {
    /// The state after `byte`, as in table 3-7 of the Unicode Standard.
    pub(super) fn next(self, byte: u8) -> Option<Self> {
        let second = |least, most, is_of_three| Self::Second { least, most, is_of_three };
        match (self, byte) {
            (Self::First, 0..=0x7F) => Some(Self::First),
            (Self::First, 0xC2..=0xDF) => Some(Self::Last),
            (Self::First, 0xE0) => Some(second(0xA0, 0xBF, true)),
            (Self::First, 0xED) => Some(second(0x80, 0x9F, true)),
            (Self::First, 0xE1..=0xEF) => Some(Self::BeforeLast),
            (Self::First, 0xF0) => Some(second(0x90, 0xBF, false)),
            (Self::First, 0xF1..=0xF3) => Some(second(0x80, 0xBF, false)),
            (Self::First, 0xF4) => Some(second(0x80, 0x8F, false)),
            (Self::Last, 0x80..=0xBF) => Some(Self::First),
            (Self::BeforeLast, 0x80..=0xBF) => Some(Self::Last),
            (Self::Second { least, most, is_of_three }, _) => {
                let next = if is_of_three { Self::Last } else { Self::BeforeLast };
                (least..=most).contains(&byte).then_some(next)
            }
            _ => None,
        }
    }
}

/// Whether [`Utf8::next`] treats a byte differently from the byte before.
pub(super) fn is_first_of_range(byte: u8) -> bool {
    matches!(
        byte,
        0x80 | 0x90 | 0xA0 | 0xC0 | 0xC2 | 0xE0 | 0xE1 | 0xED | 0xEE | 0xF0 | 0xF1 | 0xF4 | 0xF5
    )
}

#[cfg(test)]
mod tests {
    use super::Utf8;

    #[test]
    fn utf8_is_what_the_standard_library_accepts() {
        let ends = [0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xDF, 0xFF];
        let accepts = |bytes: &[u8]| {
            let end = bytes.iter().try_fold(Utf8::First, |state, byte| state.next(*byte));
            end == Some(Utf8::First)
        };
        for a in 0..=u8::MAX {
            assert_eq!(accepts(&[a]), std::str::from_utf8(&[a]).is_ok());
            for b in 0..=u8::MAX {
                for c in ends {
                    let [three, four] = [&[a, b, c][..], &[a, b, c, 0x80]];
                    assert_eq!(accepts(three), std::str::from_utf8(three).is_ok(), "{three:?}");
                    assert_eq!(accepts(four), std::str::from_utf8(four).is_ok(), "{four:?}");
                }
            }
        }
    }
}
