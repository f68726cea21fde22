//! The query language: any text is a query or is refused at one of its characters, and the printed
//! form of a query is parsed to the same tree.

use keyloom_text::query::Operator;
use keyloom_text::{Analyzer, Highlighter, Query, QueryParser};

pub(crate) fn queries(data: &[u8]) {
    holds(data, ToString::to_string);
}

/// A control: a printer that omits backslashes.
pub(crate) fn with_a_printer_that_escapes_nothing(data: &[u8]) {
    holds(data, |query| query.to_string().replace('\\', ""));
}

fn holds(data: &[u8], print: impl Fn(&Query) -> String) {
    let text = String::from_utf8_lossy(data);
    for operator in [Operator::Or, Operator::And] {
        let parser = QueryParser::new(["b", "c"]).boost("c", 2.0).operator(operator);
        match parser.parse(&text) {
            Ok(query) => {
                assert_eq!(query.check(), Ok(()));
                let printed = print(&query);
                let none: [&str; 0] = [];
                assert_eq!(QueryParser::new(none).parse(&printed), Ok(query.clone()), "{printed}");
                marks(&query, &text);
            }
            Err(error) => {
                let before = &text[..error.offset()];
                assert_eq!(error.line(), 1 + before.matches('\n').count());
                let of_line = before.rsplit('\n').next().unwrap();
                assert_eq!(error.column(), 1 + of_line.chars().count());
                assert_eq!(error.to_string().lines().count(), 3);
            }
        }
    }
}

/// Highlights a query in its own text: marks do not overlap, and are at character boundaries.
fn marks(query: &Query, text: &str) {
    let Ok(highlighter) = Highlighter::new(query, "b", &Analyzer::simple()) else { return };
    let marks = highlighter.marks(text);
    assert!(marks.windows(2).all(|pair| pair[0].end <= pair[1].start));
    assert!(marks.iter().all(|mark| text.get(mark.clone()).is_some()));
    let fragments = highlighter.fragment_chars(20).highlight(text);
    assert_eq!(fragments.is_empty(), marks.is_empty());
}
