//! Shortens terms that are too long for a key.

use super::error::AnalysisError;
use super::fingerprint::fingerprint;

/// The default and maximum limit of an analyzer.
///
/// A key has at most 511 bytes, and some of them are needed for the subspace and the block.
pub const MAX_TERM_BYTES: usize = 255;

/// Room for the hash and a few characters of the term.
const MIN_TERM_BYTES: usize = 64;

/// The length of `#` and 128 bits in hexadecimal digits.
const HASH_BYTES: usize = 33;

pub(super) fn check_limit(bytes: usize) -> Result<usize, AnalysisError> {
    let (least, most) = (MIN_TERM_BYTES, MAX_TERM_BYTES);
    match (least..=most).contains(&bytes) {
        true => Ok(bytes),
        false => Err(AnalysisError::TermBytes { bytes, least, most }),
    }
}

/// The bytes of a character in a key, where a zero byte is escaped.
fn bytes_in_key(c: char) -> usize {
    if c == '\0' { 2 } else { c.len_utf8() }
}

/// The term itself; if it is longer than `limit`, its beginning and a hash of the whole term.
pub(super) fn shorten<'t>(term: &'t str, limit: usize, buffer: &'t mut String) -> &'t str {
    let zeros = || term.bytes().filter(|byte| *byte == 0).count();
    if term.len() <= limit && term.len() + zeros() <= limit {
        return term;
    }
    let mut kept_bytes = 0;
    let kept = term.chars().take_while(|c| {
        kept_bytes += bytes_in_key(*c);
        kept_bytes + HASH_BYTES <= limit
    });
    buffer.clear();
    buffer.extend(kept);
    buffer.push_str(&format!("#{:032x}", fingerprint([term])));
    buffer
}

#[cfg(test)]
mod tests {
    use super::{MAX_TERM_BYTES, shorten};

    fn shortened(term: &str) -> String {
        shorten(term, MAX_TERM_BYTES, &mut String::new()).to_owned()
    }

    #[test]
    fn terms_within_the_limit_are_kept() {
        for term in ["", "a", &"x".repeat(255)] {
            assert_eq!(shortened(term), term);
        }
    }

    #[test]
    fn long_terms_keep_their_start_and_stay_distinct() {
        let (a, b) = ("é".repeat(200) + "a", "é".repeat(200) + "b");
        assert!(shortened(&a).starts_with(&"é".repeat(111)) && shortened(&a).len() == 255);
        assert_ne!(shortened(&a), shortened(&b));
        // A shortened term is not changed again, so a suggested term finds its documents.
        assert_eq!(shortened(&shortened(&a)), shortened(&a));
    }

    #[test]
    fn zero_bytes_count_twice() {
        assert_eq!(shortened(&"\0".repeat(127)), "\0".repeat(127));
        assert!(shortened(&"\0".repeat(128)).contains('#'));
    }
}
