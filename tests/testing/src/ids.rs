//! Ids, names and keys that are prefixes, suffixes and extensions of each other.
//!
//! A pattern that identifies a record by the beginning or the end of a key confuses such ids. Tests
//! with ids such as 1 and 2, or names such as "a" and "b", do not detect this.

/// Names: the empty one, names with NUL, and names with the largest character. Each is a prefix or
/// a suffix of another one.
pub const TEXTS: [&str; 10] =
    ["", "a", "a\0", "\0", "aa", "\0a", "ab", "a\u{FF}", "\u{FF}", "\u{10FFFF}"];

/// Keys of bytes, with the same properties as [`TEXTS`].
pub const BYTES: [&[u8]; 9] =
    [b"", b"a", b"a\0", b"\0", b"\0a", b"\xFF", b"\xFF\xFF", b"a\xFF", b"\0\xFF"];

/// The `n`-th name: first [`TEXTS`], and then extensions of them.
pub fn text(n: usize) -> String {
    let (text, round) = (TEXTS[n % TEXTS.len()], n / TEXTS.len());
    if round == 0 { text.to_owned() } else { format!("{text}{round}") }
}

/// The `n`-th of a sequence of distinct numbers. The packed form of every second number ends with
/// that of the number before it, and the packed forms of 20 and 0x1514 end with that of 0.
///
/// Truncated to 32 bits, the first 10,000 still differ; to 16 bits, the first 1,000.
pub const fn number(n: u64) -> u64 {
    // First come 0, 1, a number that ends like 0, and the limits of a byte.
    let small = match n / 2 {
        2 => 20,
        20 => 2,
        3 => 255,
        255 => 3,
        4 => 256,
        256 => 4,
        half => half,
    };
    match (n % 2, small) {
        (0, small) => small,
        (_, 0) => u64::MAX,
        // Numbers with a length between those of the others.
        (_, 256) => 1 << 40 | 0x1600,
        (_, small) => 0x1500 + small,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use keyloom::pack;

    #[test]
    fn numbers_differ_and_their_packed_forms_end_alike() {
        let numbers: Vec<u64> = (0..1_000).map(number).collect();
        let sixteen: BTreeSet<u16> = numbers.iter().map(|id| *id as u16).collect();
        assert_eq!(sixteen.len(), numbers.len());
        let thirty_two: BTreeSet<u32> = (0..10_000).map(|n| number(n) as u32).collect();
        assert_eq!(thirty_two.len(), 10_000);
        let forms: Vec<_> = numbers[..8].iter().map(|id| pack(&(id,))).collect();
        let pairs = forms.iter().flat_map(|a| forms.iter().map(move |b| (a, b)));
        assert_eq!(pairs.filter(|(a, b)| a != b && a.ends_with(b)).count(), 5);
    }

    #[test]
    fn each_name_is_a_part_of_another_one() {
        let names: BTreeSet<String> = (0..40).map(text).collect();
        assert_eq!(names.len(), 40);
        for name in TEXTS {
            let others = names.iter().filter(|other| *other != name);
            let is_part = |other: &String| other.starts_with(name) || other.ends_with(name);
            assert!(others.into_iter().any(is_part), "{name:?}");
        }
    }
}
