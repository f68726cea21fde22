//! Short forms of strings that are too long for a key.

use std::borrow::Cow;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The short form of `text` for a key. A text of at most `most` bytes is unchanged. The short form
/// of a longer text is a prefix of at most `most` bytes, followed by `…` and 32 hexadecimal digits,
/// the first half of its SHA-256. `…` and the digits add 35 bytes. A key has at most 511 bytes for
/// all of its parts, so 200 is a good limit for one string.
///
/// Use it for URLs, paths and titles in indexes, in group-by fields and in queries. In practice,
/// different texts never have the same short form: no collision of the digits is known, and finding
/// one takes 2<sup>64</sup> attempts. Short forms sort like the texts, except among texts that have
/// the first `most` - 3 bytes in common.
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_tables::{Index, Table, entry, shortened};
/// let by_url = Index::new(&Subspace::new("by_url"), |_, url: &String| entry(shortened(url, 200)));
/// let pages = Table::<u32, String>::new(&Subspace::new("pages")).with(&by_url);
/// let store = Memory::new();
/// let [long, longer] = [1_000, 1_001].map(|n| format!("https://example.org/{}", "a/".repeat(n)));
/// let two = [(1, long), (2, longer)];
/// store.transact(|txn| pages.put_many(txn, &two))?;
/// let found = by_url.query().prefix(shortened(&two[0].1, 200)).keys(&store.snapshot()?)?;
/// assert_eq!(found.items, [1]);
/// assert_eq!(shortened("short", 200), "short");
/// # Ok::<(), keyloom::Error>(())
/// ```
pub fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let mut short = beginning(text, most).to_owned();
    short.push('…');
    for byte in digest(text.as_bytes()) {
        // Writing to a `String` never fails.
        let _ = write!(short, "{byte:02x}");
    }
    Cow::Owned(short)
}

/// The longest prefix of at most `most` bytes that ends at the end of a character.
fn beginning(text: &str, most: usize) -> &str {
    // A character has at most four bytes.
    (most.saturating_sub(3)..=most).rev().find_map(|end| text.get(..end)).unwrap_or_default()
}

/// The first half of the SHA-256 of `bytes`.
pub fn digest(bytes: &[u8]) -> [u8; 16] {
    let mut half = [0; 16];
    half.iter_mut().zip(Sha256::digest(bytes)).for_each(|(to, byte)| *to = byte);
    half
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn near(most: usize) -> impl Strategy<Value = String> {
        let unit = prop::sample::select(vec!["a", "\0", "é", "…", "𝄞"]);
        let end = prop::sample::select(vec!["", "a", "…", "𝄞", "\u{10FFFF}0"]);
        (unit, 0..=2 * most, end)
            .prop_map(|(unit, bytes, end)| unit.repeat(bytes / unit.len()) + end)
    }

    proptest! {
        #[test]
        fn short_forms_differ_and_keep_the_order_of_beginnings(
            (most, a, b) in (0_usize..40).prop_flat_map(|most| (Just(most), near(most), near(most))),
        ) {
            let [short_a, short_b] = [&a, &b].map(|text| shortened(text, most));
            prop_assert!(short_a.len() <= most + 35);
            prop_assert_eq!(a == b, short_a == short_b);
            let shared = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
            if shared + 3 < most {
                prop_assert_eq!(a.cmp(&b), short_a.cmp(&short_b));
            }
        }
    }

    #[test]
    fn the_digits_are_those_of_the_standard() {
        // FIPS 180-4, the example of one block.
        let abc = "ba7816bf8f01cfea414140de5dae2223";
        assert_eq!(shortened("abc", 2), format!("ab…{abc}"));
        assert_eq!(shortened("é", 1), "…4a99557e4033c3539de2eb65472017ca");
    }
}
