//! Analysis: published examples of each part, and laws for any text.

mod apostrophes;
mod descriptions;
mod laws;
mod letters;
mod long_terms;
mod stems;
mod synonyms;
mod tokens;

use keyloom_text::analysis::Analyzer;

/// The terms with their positions.
fn placed(analyzer: &Analyzer, text: &str) -> Vec<(String, u32)> {
    analyzer.tokens(text).into_iter().map(|token| (token.term, token.position)).collect()
}

fn assert_placed(analyzer: &Analyzer, text: &str, expected: &[(&str, u32)]) {
    let expected: Vec<_> = expected.iter().map(|(term, at)| (term.to_string(), *at)).collect();
    assert_eq!(placed(analyzer, text), expected, "{text}");
}
