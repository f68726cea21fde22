//! A hash that is the same on every machine and in every version.

/// The 128-bit FNV-1a hash of words in order. The hash is not cryptographic.
pub(super) fn fingerprint<'w>(words: impl IntoIterator<Item = &'w str>) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0100_0000_0000_0000_0000_013b;
    let step = |hash: u128, byte: u8| (hash ^ u128::from(byte)).wrapping_mul(PRIME);
    words.into_iter().fold(OFFSET, |hash, word| {
        // The separator 0xFF does not occur in UTF-8.
        step(word.bytes().fold(hash, step), 0xFF)
    })
}

/// The upper half of a [`fingerprint`], for descriptions.
pub(super) fn short_fingerprint<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    format!("{:016x}", fingerprint(words) >> 64)
}

#[cfg(test)]
mod tests {
    use super::fingerprint;

    #[test]
    fn fingerprint_separates_words() {
        assert_ne!(fingerprint(["ab", "c"]), fingerprint(["a", "bc"]));
        assert_ne!(fingerprint([""]), fingerprint([]));
    }
}
