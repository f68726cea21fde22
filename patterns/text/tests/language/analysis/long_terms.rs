//! Terms that are too long for a key.

use keyloom_text::analysis::{AnalysisError, Analyzer, MAX_TERM_BYTES};

#[test]
fn long_terms_are_found_again_by_their_hash() {
    let keyword = Analyzer::keyword();
    let (url, other) = ("u".repeat(300), "u".repeat(301));
    assert_eq!(keyword.terms(&url), keyword.terms(&url));
    assert_ne!(keyword.terms(&url), keyword.terms(&other));
    assert_eq!(keyword.terms(&url)[0].len(), MAX_TERM_BYTES);
    let token = &keyword.tokens(&url)[0];
    assert_eq!((token.start, token.end), (0, 300));
}

#[test]
fn the_limit_can_be_lowered() {
    let short = Analyzer::keyword().max_term_bytes(64).unwrap();
    assert_eq!(short.terms(&"x".repeat(64)), ["x".repeat(64)]);
    let term = short.terms(&"é".repeat(33)).remove(0);
    assert!(term.starts_with(&"é".repeat(15)) && term.len() == 63);
    for bytes in [0, 63, 256] {
        let expected = AnalysisError::TermBytes { bytes, least: 64, most: 255 };
        assert_eq!(Analyzer::keyword().max_term_bytes(bytes).unwrap_err(), expected);
    }
}
