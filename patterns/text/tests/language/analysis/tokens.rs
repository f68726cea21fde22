//! Tokenizers, and filters that add or remove tokens.

use keyloom_text::analysis::{AnalysisError, Analyzer, Tokenizer};

use super::assert_placed;

#[test]
fn words_are_those_of_the_annex() {
    // The example of Unicode Standard Annex #29, with an ASCII apostrophe in the terms, and
    // examples of its rules by number.
    let words = Analyzer::new("words", Tokenizer::words());
    let cases: [(&str, &[&str]); 9] = [
        (
            "The quick (“brown”) fox can’t jump 32.3 feet, right?",
            &["The", "quick", "brown", "fox", "can't", "jump", "32.3", "feet", "right"],
        ),
        ("e-mail 3,456.789 A.B.C.", &["e", "mail", "3,456.789", "A.B.C"]), // WB 6, 7, 11, 12
        ("example_word 1_000", &["example_word", "1_000"]),                // WB 13a, 13b
        ("ab12 12ab", &["ab12", "12ab"]),                                  // WB 9, 10
        ("カタカナ 한국어", &["カタカナ", "한국어"]),                      // WB 13
        ("中文", &["中", "文"]),
        ("e\u{301}te\u{301}", &["e\u{301}te\u{301}"]), // WB 4
        ("🦀 !? —", &[]),
        ("", &[]),
    ];
    for (text, expected) in cases {
        assert_eq!(words.terms(text), expected, "{text}");
    }
}

#[test]
fn each_emoji_of_unicode_is_one_token() {
    let emoji = Analyzer::new("emoji", Tokenizer::words_and_emoji());
    // Filters replace a few, such as two exclamation marks in one character.
    let filtered = emoji.clone().fold_accents().lower_case();
    let plain = emojis::iter().map(|one| one.as_str());
    let toned = emojis::iter().flat_map(|one| one.skin_tones().into_iter().flatten());
    let all: Vec<&str> = plain.chain(toned.map(|one| one.as_str())).collect();
    assert!(all.len() > 3_500, "{} emoji", all.len());
    for one in all {
        assert_eq!(emoji.terms(one), [one], "{}", one.escape_unicode());
        assert_eq!(filtered.terms(one).len(), 1, "{}", one.escape_unicode());
        assert_placed(
            &emoji,
            &format!("a {one}, b {one}"),
            &[("a", 0), (one, 1), ("b", 2), (one, 3)],
        );
    }
    // A sequence whose first character lacks U+FE0F, and a part of sequences.
    for one in ["\u{1F3F3}\u{200D}\u{1F308}", "\u{2764}\u{200D}\u{1F525}", "\u{1F9B0}"] {
        assert_eq!(emoji.terms(one), [one], "{}", one.escape_unicode());
    }
    // Without U+FE0F, and with the character for text, these are drawn as text.
    for text in ["\u{2764}", "\u{A9}", "\u{1F600}\u{FE0E}", "*", "\u{1F1F3}"] {
        assert_eq!(emoji.terms(text), [""; 0], "{}", text.escape_unicode());
    }
}

#[test]
fn paths_have_a_term_per_level() {
    let paths = Analyzer::paths();
    assert_placed(&paths, "/a/b/c", &[("/a", 0), ("/a/b", 1), ("/a/b/c", 2)]);
    assert_placed(&paths, "a//b/", &[("a", 0), ("a//b", 1)]);
    assert_placed(&paths, "/", &[]);
    let windows = Analyzer::new("windows", Tokenizer::paths('\\'));
    assert_placed(&windows, r"C:\temp", &[("C:", 0), (r"C:\temp", 1)]);
}

#[test]
fn ngrams_are_numbered_by_their_first_character() {
    let grams = Analyzer::new("grams", Tokenizer::ngrams(2..=3).unwrap());
    let expected = [("dé", 0), ("déj", 0), ("éj", 1), ("éjà", 1), ("jà", 2)];
    assert_placed(&grams, "déjà", &expected);
    let prefixes = Analyzer::new("prefixes", Tokenizer::edge_ngrams(2..=9).unwrap());
    assert_placed(&prefixes, "déj", &[("dé", 0), ("déj", 0)]);
    assert_placed(&prefixes, "d", &[]);
}

#[test]
fn gram_filters_keep_the_place_of_the_word() {
    let grams = Analyzer::simple().edge_ngrams(1..=2).unwrap();
    assert_placed(&grams, "Ab c", &[("a", 0), ("ab", 0), ("c", 1)]);
    assert!(grams.tokens("x Ab")[1..].iter().all(|token| (token.start, token.end) == (2, 4)));
    let inside = Analyzer::simple().ngrams(2..=2).unwrap();
    assert_placed(&inside, "abc", &[("ab", 0), ("bc", 0)]);
}

#[test]
fn lengths_of_ngrams_are_checked() {
    #[allow(clippy::reversed_empty_ranges)]
    for lengths in [0..=2, 3..=2, 1..=65] {
        let (min, max) = (*lengths.start(), *lengths.end());
        let error = Tokenizer::ngrams(lengths.clone()).unwrap_err();
        assert_eq!(error, AnalysisError::GramLengths { min, max, limit: 64 });
        assert_eq!(Analyzer::simple().edge_ngrams(lengths).unwrap_err(), error);
    }
}

#[test]
fn stop_words_leave_gaps() {
    let english = Analyzer::english();
    assert_placed(&english, "down the rabbit hole", &[("down", 0), ("rabbit", 2), ("hole", 3)]);
    assert_placed(&english, "To be, or not to be", &[]);
}

#[test]
fn parts_of_words_are_not_stemmed() {
    assert_eq!(Analyzer::english().normalize("The RUNNIŃG*"), "the running*");
    assert_eq!(Analyzer::keyword().normalize("As It Is"), "As It Is");
}
