//! Laws that hold for every analyzer and every text.

use std::sync::LazyLock;

use keyloom_text::analysis::{Analyzer, Language, MAX_TERM_BYTES, Synonyms, Tokenizer};
use proptest::prelude::*;

static ANALYZERS: LazyLock<Vec<Analyzer>> = LazyLock::new(analyzers);

fn analyzers() -> Vec<Analyzer> {
    let synonyms = Synonyms::new()
        .equivalent(["a", "b c", "x"])
        .replace("b", ["a b a", "c"])
        .expand("c a", ["b b b b"]);
    let grams = Tokenizer::ngrams(1..=2).unwrap();
    let mut all = vec![
        Analyzer::simple(),
        Analyzer::keyword(),
        Analyzer::names(),
        Analyzer::paths(),
        Analyzer::new("words", Tokenizer::words()),
        Analyzer::new("emoji", Tokenizer::words_and_emoji()),
        Analyzer::new("folded emoji", Tokenizer::words_and_emoji()).fold_accents().lower_case(),
        Analyzer::new("grams", grams).lower_case(),
        Analyzer::new("edges", Tokenizer::edge_ngrams(2..=4).unwrap()),
        Analyzer::names().edge_ngrams(1..=3).unwrap(),
        Analyzer::simple().ngrams(2..=3).unwrap(),
        Analyzer::keyword().max_term_bytes(64).unwrap(),
        Analyzer::simple().synonyms(&synonyms).unwrap(),
        Analyzer::new("both", grams).synonyms(&synonyms).unwrap().stop_words(["a"]),
    ];
    all.extend(Language::ALL.iter().copied().map(Analyzer::language));
    all
}

/// Letters with special rules: those of the synonyms above, accented letters, and letters of other
/// scripts.
const LETTERS: &str = "[abcx abcx'’./0-9éßŁİΣσςюҫ\u{300}가각हि中ไ🦀\u{0}ﬁ²\n]{0,40}";

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), LETTERS, "\\PC{0,300}", "[a-z]{0,600}"]
}

fn with_one_apostrophe(text: &str) -> String {
    text.replace(['\u{2018}', '\u{2019}', '\u{201B}', '\u{2BB}', '\u{2BC}', '\u{FF07}'], "'")
}

proptest! {
    #[test]
    fn tokens_have_sound_places_and_lengths(text in texts()) {
        for analyzer in &*ANALYZERS {
            let mut last_position = 0;
            analyzer.analyze(&text, |token| {
                assert!(text.get(token.start..token.end).is_some_and(|slice| !slice.is_empty()));
                assert!(token.position >= last_position, "{analyzer:?} of {text:?}");
                last_position = token.position;
                assert!(!token.term.is_empty() && token.term.len() <= MAX_TERM_BYTES);
            });
        }
    }

    #[test]
    fn terms_without_filters_are_slices(text in texts()) {
        let grams = Tokenizer::ngrams(1..=3).unwrap();
        let edges = Tokenizer::edge_ngrams(1..=3).unwrap();
        let words = [Tokenizer::words(), Tokenizer::words_and_emoji()];
        let all = [words[0], words[1], Tokenizer::paths('/'), grams, edges];
        for analyzer in all.map(|tokenizer| Analyzer::new("plain", tokenizer)) {
            for token in analyzer.tokens(&text) {
                let slice = &text[token.start..token.end];
                let is_equal = token.term == slice || token.term == with_one_apostrophe(slice);
                assert!(is_equal || slice.len() > 200);
            }
        }
    }

    #[test]
    fn words_are_the_tokens_that_are_no_emoji(text in texts()) {
        let [words, both] = [Tokenizer::words(), Tokenizer::words_and_emoji()]
            .map(|tokenizer| Analyzer::new("plain", tokenizer));
        let is_word = |term: &String| term.contains(char::is_alphanumeric);
        let left: Vec<String> = both.terms(&text).into_iter().filter(is_word).collect();
        prop_assert_eq!(left, words.terms(&text));
    }

    #[test]
    fn filtered_terms_are_those_of_the_slice(text in texts()) {
        let names = Analyzer::names();
        for token in names.tokens(&text) {
            let slice = &text[token.start..token.end];
            let whole = names.normalize(slice);
            prop_assert!(token.term == whole || whole.len() > MAX_TERM_BYTES / 2);
        }
    }

    #[test]
    fn lower_case_and_folding_are_idempotent(text in texts()) {
        let whole = Analyzer::new("whole", Tokenizer::keyword());
        let lower_case = whole.clone().lower_case();
        let folded = whole.clone().fold_accents();
        let turkish = whole.clone().turkish_lower_case();
        let both = whole.fold_accents().lower_case();
        for analyzer in [lower_case, turkish, folded, both] {
            let once = analyzer.normalize(&text);
            prop_assert_eq!(analyzer.normalize(&once), once.clone());
        }
    }

    #[test]
    fn analysis_has_no_state(text in texts(), other in texts()) {
        for analyzer in &*ANALYZERS {
            let before = analyzer.tokens(&text);
            analyzer.tokens(&other);
            prop_assert_eq!(analyzer.clone().tokens(&text), before);
        }
    }

    #[test]
    fn words_are_found_by_another_walk(text in texts()) {
        // The boundaries of all segments; segments with a letter or digit are words.
        use unicode_segmentation::UnicodeSegmentation;
        let text = with_one_apostrophe(&text);
        let segments = text.split_word_bounds();
        let words: Vec<_> = segments
            .filter(|segment| segment.chars().any(char::is_alphanumeric))
            .filter(|segment| segment.len() <= MAX_TERM_BYTES / 2)
            .collect();
        let found = Analyzer::new("words", Tokenizer::words()).terms(&text);
        let found: Vec<_> = found.iter().filter(|term| term.len() <= MAX_TERM_BYTES / 2).collect();
        prop_assert_eq!(found, words);
    }
}
