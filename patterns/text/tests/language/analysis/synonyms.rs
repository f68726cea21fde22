//! Synonyms: the added terms and their positions.

use keyloom_text::analysis::{AnalysisError, Analyzer, Synonyms};

use super::assert_placed;

fn with(synonyms: Synonyms) -> Analyzer {
    Analyzer::simple().synonyms(&synonyms).unwrap()
}

#[test]
fn equivalent_words_share_a_position() {
    let shop = with(Synonyms::new().equivalent(["sofa", "couch", "settee"]));
    let expected = [("a", 0), ("couch", 1), ("settee", 1), ("sofa", 1), ("bed", 2)];
    assert_placed(&shop, "a Sofa bed", &expected);
    let expected = [("sofa", 0), ("couch", 0), ("settee", 0)];
    assert_placed(&shop, "settee", &expected);
}

#[test]
fn phrases_are_replaced_in_place() {
    let places =
        with(Synonyms::new().replace("New York City", ["NYC"]).replace("NYPD", ["police"]));
    let text = "the New York City NYPD";
    assert_placed(&places, text, &[("the", 0), ("nyc", 1), ("police", 4)]);
    let nyc = &places.tokens(text)[1];
    assert_eq!(&text[nyc.start..nyc.end], "New York City");
    assert_placed(&places, "new york", &[("new", 0), ("york", 1)]);
}

#[test]
fn longer_phrases_overlap_in_ascending_positions() {
    let places = with(Synonyms::new().expand("nyc", ["new york city"]));
    let expected =
        [("in", 0), ("new", 1), ("nyc", 1), ("york", 2), ("is", 2), ("city", 3), ("big", 3)];
    assert_placed(&places, "in NYC is big", &expected);
    assert_placed(&places, "nyc", &[("new", 0), ("nyc", 0), ("york", 1), ("city", 2)]);
}

#[test]
fn the_longest_rule_applies_and_is_not_applied_again() {
    let rules = Synonyms::new()
        .replace("a", ["one"])
        .replace("a b", ["two"])
        .replace("a b c", ["a b c d"])
        .replace("c", ["three"]);
    let rules = with(rules);
    assert_placed(&rules, "a b", &[("two", 0)]);
    assert_placed(&rules, "a x", &[("one", 0), ("x", 1)]);
    assert_placed(&rules, "a b c", &[("a", 0), ("b", 1), ("c", 2), ("d", 3)]);
    assert_placed(&rules, "a b b c", &[("two", 0), ("b", 2), ("three", 3)]);
    assert_placed(&rules, "a a b", &[("one", 0), ("two", 1)]);
}

#[test]
fn rules_are_analysed_by_the_filters_before_them() {
    let stop_words = Analyzer::english().synonyms(
        &Synonyms::new().equivalent(["Queen of Hearts", "her majesties"]).expand("cats", ["Dinah"]),
    );
    let alice = stop_words.unwrap();
    let expected = [("her", 1), ("queen", 1), ("majesti", 2), ("heart", 3)];
    assert_placed(&alice, "the Queen of Hearts", &expected);
    assert_placed(&alice, "a queen, hearts", &[("queen", 1), ("heart", 2)]);
    assert_placed(&alice, "Cat", &[("dinah", 0), ("cat", 0)]);
}

#[test]
fn phrases_without_terms_are_refused() {
    let refused = |phrase: &str| {
        let synonyms = Synonyms::new().expand("word", [phrase]);
        Analyzer::english().synonyms(&synonyms).unwrap_err()
    };
    let AnalysisError::Synonym { phrase, terms: 0, limit: 16 } = refused("of the") else {
        panic!()
    };
    assert_eq!(phrase, "of the");
    assert!(matches!(refused(&"x ".repeat(17)), AnalysisError::Synonym { terms: 17, .. }));
}
