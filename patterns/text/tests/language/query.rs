//! Query trees: the results of builders, printing, and refused queries.

use keyloom_text::{BooleanQuery, Near, Query, QueryError, Spans};

#[test]
fn queries_are_printed_with_their_fields() {
    let word = |text: &str| Query::term("b", text);
    let printed = [
        (Query::All, "*:*"),
        (word("alice"), "b:alice"),
        (word("AND"), r"b:\AND"),
        (word("a+b c\"d"), r#"b:a\+b\ c\"d"#),
        (Query::term("my field", "x"), r"my\ field:x"),
        (Query::phrase("b", r#"white "rabbit""#), r#"b:"white \"rabbit\"""#),
        (Query::phrase("b", "white rabbit").slop(3), r#"b:"white rabbit"~3"#),
        (Query::prefix("b", "al"), "b:al*"),
        (Query::prefix("b", ""), "b:*"),
        (Query::exists("b"), "b:*"),
        (Query::combined([("b", 1.0)], "x \"y"), r#"COMBINED(b):"x \"y""#),
        (
            Query::combined([("my b", 0.5), ("", 1.0)], "").boost(2.0),
            r#"COMBINED(my\ b^0.5 ""):""^2"#,
        ),
        (Query::combined([("COMBINED", 3.0)], "x"), r#"COMBINED(\COMBINED^3):"x""#),
        (word("COMBINED"), r"b:\COMBINED"),
        (Query::wildcard("b", r"w?m*n\*"), r"b:w?m*n\*"),
        (Query::regex("b", "a/b|c"), r"b:/a\/b|c/"),
        (Query::fuzzy("b", "alise", 1), "b:alise~1"),
        (Query::fuzzy("b", "alise", 2).fuzzy_prefix(1), "b:alise~2/1"),
        (Query::range("b", "a".to_owned()..="b".to_owned()), "b:[a TO b]"),
        (Query::range("b", "a".to_owned()..), "b:[a TO *]"),
        (Query::range("b", ..), "b:[* TO *]"),
        (Query::all_of([word("a"), word("c")]), "+b:a +b:c"),
        (Query::any_of([word("a"), word("c")]), "b:a OR b:c"),
        (Query::any_of([word("a")]), "|b:a"),
        (Query::any_of([]), "()"),
        (Query::none_of([word("a")]), "-b:a"),
        (word("a").boost(2.5), "b:a^2.5"),
        (word("a").boost(2.0).boost(3.0), "(b:a^2)^3"),
        (Query::any_of([word("a"), word("c")]).constant_score(1.0), "(b:a OR b:c)^=1"),
    ];
    for (query, expected) in printed {
        assert_eq!(query.to_string(), expected);
    }
}

#[test]
fn combinations_are_printed_with_signs() {
    let word = |text: &str| Query::term("b", text);
    let query = BooleanQuery::new()
        .should(word("s"))
        .must_not(word("n"))
        .must(word("m"))
        .filter(Query::any_of([word("f"), word("g")]));
    let query = Query::from(query.minimum_should_match(1));
    assert_eq!(query.to_string(), "(+b:m #(b:f OR b:g) |b:s -b:n)~1");
}

#[test]
fn wildcards_that_are_simpler_queries_become_those() {
    assert_eq!(Query::wildcard("b", "al**"), Query::prefix("b", "al"));
    assert_eq!(Query::wildcard("b", "*"), Query::prefix("b", ""));
    assert_eq!(Query::wildcard("b", r"a\*"), Query::fuzzy("b", "a*", 0));
    assert_eq!(Query::wildcard("b", r"a**\b?"), Query::wildcard("b", "a*b?"));
}

#[test]
fn should_clauses_are_required_unless_others_are() {
    let word = || Query::term("b", "x");
    let required = [
        (BooleanQuery::new(), 1),
        (BooleanQuery::new().should(word()), 1),
        (BooleanQuery::new().should(word()).must_not(word()), 1),
        (BooleanQuery::new().must_not(word()), 0),
        (BooleanQuery::new().should(word()).must(word()), 0),
        (BooleanQuery::new().should(word()).filter(word()), 0),
        (BooleanQuery::new().should(word()).must(word()).minimum_should_match(1), 1),
    ];
    for (query, count) in required {
        assert_eq!(query.required_should(), count, "{query:?}");
    }
}

#[test]
fn bad_scores_distances_and_spans_are_refused() {
    let word = || Query::term("b", "x");
    for score in [f32::NAN, f32::INFINITY, -1.0] {
        let found = Query::all_of([word().boost(score)]).check().unwrap_err();
        assert!(matches!(&found, QueryError::Score { query, .. } if query == "b:x"), "{found}");
        assert!(word().constant_score(score).check().is_err());
    }
    assert_eq!(word().boost(0.0).check(), Ok(()));
    let boosts = |some: &[f32]| some.iter().fold(word(), |query, factor| query.boost(*factor));
    assert_eq!(boosts(&[f32::MAX, 1.0]).check(), Ok(()));
    for some in [&[f32::MAX, 1.1][..], &[f32::MAX; 9], &[1e20, 1e19]] {
        let found = boosts(some).check().unwrap_err();
        assert!(matches!(found, QueryError::Boosts { .. }), "{found}");
    }
    // A constant score replaces the scores inside.
    let inside = boosts(&[f32::MAX]).constant_score(2.0);
    assert_eq!(inside.clone().boost(9.0).check(), Ok(()));
    assert!(matches!(inside.boost(f32::MAX).check(), Err(QueryError::Boosts { .. })));
    let none: [(&str, f32); 0] = [];
    let found = Query::combined(none, "x").check().unwrap_err();
    assert!(matches!(found, QueryError::NoFields { .. }), "{found}");
    let found = Query::fuzzy("b", "x", 3).check().unwrap_err();
    assert_eq!(found, QueryError::Distance { query: "b:x~3".to_owned(), distance: 3 });
    let few = |spans: Spans| Query::near("b", Near::ordered([spans, "y".into()])).check();
    assert_eq!(few("x".into()), Ok(()));
    let lonely = QueryError::TooFewSpans { query: "NEAR(x)".to_owned(), count: 1, least: 2 };
    assert_eq!(few(Near::unordered(["x"]).into()), Err(lonely));
    let none: [Spans; 0] = [];
    let empty = QueryError::TooFewSpans { query: "ANY()".to_owned(), count: 0, least: 1 };
    assert_eq!(few(Spans::any_of(none)), Err(empty));
}

#[test]
fn deep_queries_are_refused() {
    let nested = |levels| (1..levels).fold(Query::All, |query, _| query.boost(1.0));
    assert_eq!(nested(100).check(), Ok(()));
    assert_eq!(nested(101).check(), Err(QueryError::TooDeep { limit: 100 }));
    let spans = (0..200).fold(Near::ordered(["a", "b"]), |near, _| {
        Near::unordered([near.into(), Spans::from("c")])
    });
    assert_eq!(Query::near("b", spans).check(), Err(QueryError::TooDeep { limit: 100 }));
}

#[test]
fn queries_of_any_depth_are_refused_without_an_abort() {
    use keyloom_text::{Analyzer, Highlighter, QueryError};
    let nested = |levels: usize, kind: usize| {
        (0..levels).fold(Query::term("b", "a"), |query, level| match (level + kind) % 4 {
            0 => query.boost(1.0),
            1 => query.constant_score(1.0),
            2 => Query::all_of([Query::All, query]),
            _ => Query::none_of([query]),
        })
    };
    for kind in 0..4 {
        let deep = nested(99_000, kind);
        let copy = deep.clone();
        assert!(copy == deep && deep != nested(98_999, kind) && deep != nested(99_000, kind + 1));
        assert!(format!("{deep} {copy:?}").contains("more than 300 levels"));
        assert!(keyloom_text::QueryParser::new(["b"]).parse(&deep.to_string()).is_err());
        assert_eq!(deep.check(), Err(QueryError::TooDeep { limit: 100 }));
        let refused = Highlighter::new(&deep, "b", &Analyzer::simple()).unwrap_err();
        assert_eq!(refused, QueryError::TooDeep { limit: 100 });
        let allowed = nested(99, kind);
        assert!(allowed.check().is_ok() && allowed.clone() == allowed);
        assert!(allowed.to_string().contains("b:a"));
    }
}
