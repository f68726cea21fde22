//! Descriptions are stored with an index. If a description changes, existing indexes are refused.

use keyloom_text::analysis::{Analyzer, Language, Synonyms, Tokenizer};

#[test]
fn descriptions_do_not_change() {
    let synonyms = Synonyms::new().equivalent(["sofa", "couch"]);
    let grams = Tokenizer::ngrams(2..=3).unwrap();
    let edges = Tokenizer::edge_ngrams(1..=8).unwrap();
    let described = [
        (Analyzer::simple(), "words/2 lower_case/3"),
        (Analyzer::new("", Tokenizer::words_and_emoji()), "words_and_emoji/1"),
        (Analyzer::keyword(), "keyword/1"),
        (Analyzer::names(), "words/2 fold_accents/2 lower_case/3"),
        (Analyzer::paths(), "paths/1('/')"),
        (Analyzer::new("", grams), "ngrams/1(2..=3)"),
        (Analyzer::new("", edges), "edge_ngrams/1(1..=8)"),
        (Analyzer::keyword().ngrams(2..=2).unwrap(), "keyword/1 ngram_filter/1(2..=2)"),
        (Analyzer::keyword().edge_ngrams(1..=4).unwrap(), "keyword/1 edge_ngram_filter/1(1..=4)"),
        (Analyzer::english(), ENGLISH),
        (Analyzer::language(Language::German), GERMAN),
        (
            Analyzer::new("", Tokenizer::words()).turkish_lower_case(),
            "words/2 turkish_lower_case/2",
        ),
        (Analyzer::simple().synonyms(&synonyms).unwrap(), SYNONYMS),
    ];
    for (analyzer, expected) in described {
        assert_eq!(analyzer.description(), format!("{expected} max_bytes/1(255)"));
    }
    let short = Analyzer::keyword().max_term_bytes(100).unwrap();
    assert_eq!(short.description(), "keyword/1 max_bytes/1(100)");
}

const ENGLISH: &str =
    "words/2 fold_accents/2 lower_case/3 stop_words/1(33 37e8aba3d272b4b3) stem/1(english)";
const GERMAN: &str = "words/2 lower_case/3 stop_words/1(232 e1d0d440764ca39f) stem/1(german)";
const SYNONYMS: &str = "words/2 lower_case/3 synonyms/1(2 f16981a7e2f217f8)";

#[test]
fn word_lists_are_described_by_their_content() {
    let with = |words: &[&'static str]| Analyzer::simple().stop_words(words.to_vec()).description();
    assert_eq!(with(&["a", "b"]), with(&["b", "a", "b"]));
    assert_ne!(with(&["a", "b"]), with(&["ab"]));
    assert_ne!(with(&["a", "b"]), with(&["a", "c"]));
}

#[test]
fn synonyms_are_described_by_their_content() {
    let with = |synonyms| Analyzer::simple().synonyms(&synonyms).unwrap().description();
    let all = [
        with(Synonyms::new().equivalent(["a", "b"])),
        with(Synonyms::new().expand("a", ["b"])),
        with(Synonyms::new().replace("a", ["b"])),
        with(Synonyms::new().replace("a", ["c"])),
        with(Synonyms::new().replace("a", ["b c"])),
        with(Synonyms::new().replace("a", ["b", "c"])),
        with(Synonyms::new().replace("a b", ["c"])),
    ];
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len());
    assert_eq!(all[0], with(Synonyms::new().equivalent(["B", "A"])));
}

#[test]
fn every_language_has_a_name_and_a_description() {
    for &language in Language::ALL {
        let analyzer = Analyzer::language(language);
        assert_eq!(analyzer.name(), language.name());
        assert!(analyzer.description().contains(&format!("stem/1({})", language.name())));
    }
}
