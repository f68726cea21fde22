//! The query syntax: expected trees, error positions, and printing as the inverse of parsing.

use std::ops::Bound;

use keyloom_text::query::{Operator, ParseErrorKind};
use keyloom_text::{BooleanQuery, Near, ParseError, Query, QueryError, QueryParser, Spans};
use proptest::prelude::*;

fn parser() -> QueryParser {
    QueryParser::new(["b"])
}

fn word(text: &str) -> Query {
    Query::term("b", text)
}

fn words<const N: usize>(texts: [&str; N]) -> [Query; N] {
    texts.map(word)
}

#[test]
fn clauses_are_combined_by_signs_and_operators() {
    let clauses = BooleanQuery::new;
    let expected: Vec<(&str, Query)> = vec![
        ("alice", word("alice")),
        ("  alice\n", word("alice")),
        ("a c", Query::any_of(words(["a", "c"]))),
        ("a OR c", Query::any_of(words(["a", "c"]))),
        ("a || c", Query::any_of(words(["a", "c"]))),
        ("a AND c", Query::all_of(words(["a", "c"]))),
        ("a && c", Query::all_of(words(["a", "c"]))),
        ("a AND c OR d", Query::any_of([Query::all_of(words(["a", "c"])), word("d")])),
        ("a OR c AND d", Query::any_of([word("a"), Query::all_of(words(["c", "d"]))])),
        ("(a OR c) AND d", Query::all_of([Query::any_of(words(["a", "c"])), word("d")])),
        ("a c AND d", Query::any_of([word("a"), Query::all_of(words(["c", "d"]))])),
        ("a AND NOT c", clauses().must(word("a")).must_not(word("c")).into()),
        ("a AND -c", clauses().must(word("a")).must_not(word("c")).into()),
        ("a AND +c AND #d", clauses().must(word("a")).must(word("c")).filter(word("d")).into()),
        ("a OR NOT c", Query::any_of([word("a"), Query::none_of([word("c")])])),
        ("a OR -c", Query::any_of([word("a"), Query::none_of([word("c")])])),
        ("a OR |c", Query::any_of(words(["a", "c"]))),
        ("a NOT c", clauses().should(word("a")).must_not(word("c")).into()),
        ("a !c", clauses().should(word("a")).must_not(word("c")).into()),
        ("! c", Query::none_of([word("c")])),
        ("NOT NOT c", Query::none_of([Query::none_of([word("c")])])),
        ("NOT a AND NOT c", Query::none_of(words(["a", "c"]))),
        ("+a c -d", clauses().must(word("a")).should(word("c")).must_not(word("d")).into()),
        ("#a |c", clauses().filter(word("a")).should(word("c")).into()),
        ("-a", Query::none_of([word("a")])),
        ("+a", Query::all_of([word("a")])),
        ("(a)", word("a")),
        ("((a c))", Query::any_of(words(["a", "c"]))),
        ("()", BooleanQuery::new().into()),
        ("+(a c) d", clauses().must(Query::any_of(words(["a", "c"]))).should(word("d")).into()),
        (
            "(a c d)~2",
            clauses()
                .should(word("a"))
                .should(word("c"))
                .should(word("d"))
                .minimum_should_match(2)
                .into(),
        ),
        ("(+a)~0", clauses().must(word("a")).minimum_should_match(0).into()),
        ("a^2 c^0.5", Query::any_of([word("a").boost(2.0), word("c").boost(0.5)])),
        ("(a c)^=1.5", Query::any_of(words(["a", "c"])).constant_score(1.5)),
        ("(a^2)^3", word("a").boost(2.0).boost(3.0)),
        ("a^1e2", word("a").boost(100.0)),
    ];
    for (text, query) in expected {
        assert_eq!(parser().parse(text), Ok(query), "{text}");
    }
}

#[test]
fn terms_and_patterns_are_parsed() {
    let text = str::to_owned;
    let near = |near: Near| Query::near("b", near);
    let expected: Vec<(&str, Query)> = vec![
        ("title:alice", Query::term("title", "alice")),
        ("title: alice", Query::term("title", "alice")),
        (r#""my title":alice"#, Query::term("my title", "alice")),
        (r"my\ title:alice", Query::term("my title", "alice")),
        ("title:(a b:c)", Query::any_of([Query::term("title", "a"), word("c")])),
        ("title:(+a -c)^2", {
            let all = BooleanQuery::new().must(Query::term("title", "a"));
            Query::from(all.must_not(Query::term("title", "c"))).boost(2.0)
        }),
        (r#""white rabbit""#, Query::phrase("b", "white rabbit")),
        (r#""white \"rabbit\" \\"~3"#, Query::phrase("b", r#"white "rabbit" \"#).slop(3)),
        ("al*", Query::prefix("b", "al")),
        ("title:*", Query::prefix("title", "")),
        ("*", Query::All),
        ("*:*", Query::All),
        ("title:(*:*)", Query::All),
        ("w?m*n", Query::wildcard("b", "w?m*n")),
        (r"a\*b*", Query::prefix("b", "a*b")),
        (r"a\?b", word("a?b")),
        ("/r[ab]+it/", Query::regex("b", "r[ab]+it")),
        (r"/a\/b\.\\/", Query::regex("b", r"a/b\.\\")),
        ("alise~", Query::fuzzy("b", "alise", 2)),
        ("alise~1", Query::fuzzy("b", "alise", 1)),
        ("alise~1/3^2", Query::fuzzy("b", "alise", 1).fuzzy_prefix(3).boost(2.0)),
        ("b:~1", Query::fuzzy("b", "", 1)),
        ("year:[1865 TO 1900}", Query::range("year", text("1865")..text("1900"))),
        ("year:[-5 TO *]", Query::range("year", text("-5")..)),
        (
            r#"{a TO "b c"]"#,
            Query::range("b", (Bound::Excluded(text("a")), Bound::Included(text("b c")))),
        ),
        ("[2020-01-01T00:00 TO \\*]", Query::range("b", text("2020-01-01T00:00")..=text("*"))),
        ("year:>=1865", Query::range("year", text("1865")..)),
        ("year:>1865", Query::range("year", (Bound::Excluded(text("1865")), Bound::Unbounded))),
        ("year:< 1865", Query::range("year", ..text("1865"))),
        ("year:<=\"a b\"", Query::range("year", ..=text("a b"))),
        (
            r#"COMBINED(title^2 "my b" b^0.5): "white rabbit"^3"#,
            Query::combined([("title", 2.0), ("my b", 1.0), ("b", 0.5)], "white rabbit").boost(3.0),
        ),
        ("title:(COMBINED( b ):\"x\" COMBINED)", {
            let combined = Query::combined([("b", 1.0)], "x");
            Query::any_of([combined, Query::term("title", "COMBINED")])
        }),
        ("NEAR(a c)~3", near(Near::unordered(["a", "c"]).slop(3))),
        (
            r#"ORDERED(a ANY("c d" NEAR(e f)~1))^2"#,
            near(Near::ordered([
                Spans::from("a"),
                Spans::any_of([Spans::phrase("c d"), Near::unordered(["e", "f"]).slop(1).into()]),
            ]))
            .boost(2.0),
        ),
        ("title:NEAR(a c)", Query::near("title", Near::unordered(["a", "c"]))),
        // Words that contain signs, and words that look like operators.
        ("e-mail C++ AT&T a/b x=1", {
            Query::any_of(words(["e-mail", "C++", "AT&T", "a/b", "x=1"]))
        }),
        (r"\+a \-c", Query::any_of(words(["+a", "-c"]))),
        (r"\AND ANDY TO NEAR and", Query::any_of(words(["AND", "ANDY", "TO", "NEAR", "and"]))),
        ("NEAR (a c)", Query::any_of([word("NEAR"), Query::any_of(words(["a", "c"]))])),
        (r"a\:b\ c\\", word(r"a:b c\")),
        ("Wörter 中文 🦀", Query::any_of(words(["Wörter", "中文", "🦀"]))),
    ];
    for (text, query) in expected {
        assert_eq!(parser().parse(text), Ok(query), "{text}");
    }
}

#[test]
fn clauses_without_a_field_are_searched_in_default_fields() {
    let parser = QueryParser::new(["t", "b"]).boost("t", 2.5).operator(Operator::And);
    let both = |text: &str| Query::any_of([Query::term("t", text).boost(2.5), word(text)]);
    assert_eq!(parser.parse("a c"), Ok(Query::all_of([both("a"), both("c")])));
    let query = BooleanQuery::new().must(both("a")).must_not(both("c"));
    assert_eq!(parser.parse("a -c"), Ok(query.into()));
    let query = Query::all_of([both("a"), Query::any_of([both("c"), both("d")])]);
    assert_eq!(parser.parse("a c OR d"), Ok(query));
    assert_eq!(parser.parse("x:a"), Ok(Query::term("x", "a")));
    let counted = BooleanQuery::new().should(word("a")).should(word("c")).minimum_should_match(1);
    assert_eq!(parser.parse("b:(a c)~1"), Ok(counted.into()));
}

/// The error of a text: its offset and its message.
fn error(parser: &QueryParser, text: &str) -> (usize, String) {
    let error = parser.parse(text).expect_err(text);
    assert!(text.is_char_boundary(error.offset()), "{text}");
    (error.offset(), error.kind().to_string())
}

#[test]
fn errors_name_the_place_and_what_is_expected() {
    let end = "found the end of the query, expected";
    let expected = [
        ("", 0, format!("{end} a clause")),
        ("  ", 2, format!("{end} a clause")),
        ("a )", 2, "found `)`, expected a clause".into()),
        ("a AND", 5, format!("{end} a clause")),
        ("a AND OR c", 6, r"found `OR`, expected a clause; escape an operator as in `\AND`".into()),
        ("AND a", 0, r"found `AND`, expected a clause; escape an operator as in `\AND`".into()),
        ("(a c", 4, format!("{end} `)` for `(` in column 1")),
        ("d\n (a c", 7, format!("{end} `)` for `(` in line 2, column 2")),
        ("a \"c d", 6, format!("{end} `\"` for `\"` in column 3")),
        ("/a", 2, format!("{end} `/` for `/` in column 1")),
        ("a\\", 2, format!("{end} a character after `\\`")),
        ("title:", 6, format!("{end} a clause")),
        ("a:c:d", 3, r"found `:`, expected the end of the word; escape a colon as `\:`".into()),
        ("a - c", 3, r"found ` `, expected a clause directly after `-`, or `\-` for the character".into()),
        ("--a", 1, r"found `-`, expected a clause directly after `-`, or `\-` for the character".into()),
        ("a -\n", 3, r"found `\n`, expected a clause directly after `-`, or `\-` for the character".into()),
        ("a OR +c", 5, "found `+`, expected a clause without a sign, as one of `OR`; put the clause in parentheses".into()),
        ("|a AND c", 0, "found `|`, expected a clause without a sign, as one of `AND`; put the clause in parentheses".into()),
        ("NOT +a", 0, "found `NOT`, expected a clause without a sign after `NOT`".into()),
        ("a^x", 2, "found `x`, expected a finite number of at least 0".into()),
        ("a^-1", 2, "found `-`, expected a finite number of at least 0".into()),
        ("a^1e99", 2, "found `1e99`, expected a finite number of at least 0".into()),
        ("a^2^3", 3, "found `^`, expected a clause".into()),
        ("a~3", 2, "found `3`, expected a distance of 0, 1 or 2".into()),
        ("a~0.8", 2, "found `0`, expected a distance of 0, 1 or 2".into()),
        ("a~1/", 4, format!("{end} the number of equal characters")),
        ("a*~1", 2, "found `~`, expected the end of the pattern, which cannot be fuzzy".into()),
        ("\"a c\"~", 6, format!("{end} the slop: a number of positions")),
        ("(a)~9999999999", 4, "found `9999999999`, expected the number of clauses that must match".into()),
        ("[a c]", 3, "found `c`, expected `TO` between the bounds of a range".into()),
        ("[TO c]", 1, "found `TO`, expected a bound, or `*` for none".into()),
        ("[a TO c", 7, format!("{end} `]` or `}}` for `[` in column 1")),
        ("[a TO c d]", 8, "found `d`, expected `]` or `}`".into()),
        ("y:>", 3, format!("{end} a bound")),
        ("a ] c", 2, "found `]`, expected a clause".into()),
        ("= c", 0, "found `=`, expected a clause".into()),
        ("*:a", 2, "found `a`, expected `*`, since `*:*` are all documents".into()),
        ("ti*:a", 0, "found `ti`, expected a field without `*` and `?`".into()),
        ("NEAR(a)", 0, "found `NEAR`, expected at least two words or phrases in it".into()),
        ("NEAR(a ANY())", 7, "found `ANY`, expected at least one word or phrase in it".into()),
        ("NEAR(a c*)", 7, "found `c`, expected a word without `*` and `?`".into()),
        ("NEAR(a c:d)", 8, "found `:`, expected the end of the word".into()),
        ("COMBINED()", 0, "found `COMBINED`, expected at least one field in it".into()),
        ("COMBINED(a", 10, format!("{end} `)` for `C` in column 1")),
        ("COMBINED(a ~)", 11, "found `~`, expected a field or `)`".into()),
        ("COMBINED(a^0)", 11, "found `0`, expected a weight greater than 0".into()),
        ("COMBINED(a*)", 9, "found `a`, expected a field without `*` and `?`".into()),
        ("COMBINED(a) c", 11, "found ` `, expected `:` and a text after the fields".into()),
        ("COMBINED(a):c", 12, "found `c`, expected a text in quotation marks".into()),
        ("NEAR(a", 6, format!("{end} a word, a phrase or `)`")),
        ("NEAR(a [)", 7, "found `[`, expected a word, a phrase, `ANY(…)`, `NEAR(…)` or `ORDERED(…)`".into()),
    ];
    for (text, offset, message) in expected {
        assert_eq!(error(&parser(), text), (offset, message), "{text}");
    }
    let none: [&str; 0] = [];
    let (offset, message) = error(&QueryParser::new(none), "x:a c");
    assert_eq!(
        (offset, &*message),
        (4, "found `c`, expected a field, since there is no default field")
    );
}

#[test]
fn unknown_fields_are_refused_with_the_known_ones() {
    let parser = QueryParser::new(["body"]).fields(["title", "body", "year"]);
    assert_eq!(parser.parse("title:a year:b body:c").map(drop), Ok(()));
    assert_eq!(parser.parse(r#"COMBINED(title body):"a""#).map(drop), Ok(()));
    let error = parser.parse(r#"COMBINED(title boddy):"a""#).unwrap_err();
    assert_eq!(error.offset(), 15);
    assert!(error.to_string().contains("boddy"), "{error}");
    let error = parser.parse("a +(titel:c)").unwrap_err();
    assert_eq!((error.offset(), error.line(), error.column()), (4, 1, 5));
    let known = r#""body", "title", "year""#.to_owned();
    let field = "titel".to_owned();
    assert_eq!(error.kind(), &ParseErrorKind::UnknownField { field, known });
    let error = keyloom::Error::from(error);
    assert!(error.downcast_ref::<ParseError>().is_some());
}

#[test]
fn errors_show_the_line_with_a_caret() {
    let shown = |text: &str| parser().parse(text).unwrap_err().to_string();
    let expected = "line 2, column 5: found `)`, expected a clause\n  é\u{20}c )\n      ^";
    assert_eq!(shown("a\né\tc )\nd"), expected);
    let long = format!("{} ) {}", "x".repeat(100), "y".repeat(100));
    let lines: Vec<String> = shown(&long).lines().map(str::to_owned).collect();
    assert_eq!(lines[1], format!("  …{} ) {}…", "x".repeat(59), "y".repeat(58)));
    assert_eq!(lines[2], format!("  {}^", " ".repeat(61)));
}

#[test]
fn deep_texts_are_refused_at_their_place() {
    let limit = ParseErrorKind::Refused(QueryError::TooDeep { limit: 100 });
    let nested = |open: &str, levels: usize, close: &str| {
        let text = format!("{}a{}", open.repeat(levels), close.repeat(levels));
        // A thread with the default stack size.
        let parse = move || parser().parse(&text).map(drop);
        std::thread::Builder::new().stack_size(2 << 20).spawn(parse).unwrap().join().unwrap()
    };
    for (open, close) in [("(", ")"), ("-(", ")"), ("NOT ", ""), ("!", ""), ("(", ")^2")] {
        for levels in [101, 100_000] {
            let error = nested(open, levels, close).unwrap_err();
            assert_eq!(error.kind(), &limit, "{open}");
            assert!(error.offset() >= 100 * open.len() - 1, "{open} {error}");
        }
    }
    for (open, close) in [("(", ")"), ("-(", ")"), ("NOT ", ""), ("!", "")] {
        assert_eq!(nested(open, 99, close), Ok(()), "{open}");
    }
    let error = nested("NEAR(a ", 100_000, ")").unwrap_err();
    assert_eq!((error.kind(), error.offset()), (&limit, 700));
    assert_eq!(nested("NEAR(a ", 99, ")"), Ok(()));
}

#[test]
fn the_deepest_trees_are_printed_and_parsed() {
    let wraps: [fn(Query) -> Query; 4] = [
        |query| query.boost(2.0),
        |query| Query::none_of([query]),
        |query| Query::any_of([query.constant_score(1.0), word("c")]),
        |query| BooleanQuery::new().filter(query).minimum_should_match(0).into(),
    ];
    for (wrap, levels) in wraps.into_iter().zip([99, 99, 49, 99]) {
        let deepest = (0..levels).fold(word("a"), |query, _| wrap(query));
        assert_eq!(deepest.check(), Ok(()));
        assert_eq!(parser().parse(&deepest.to_string()), Ok(deepest.clone()));
        let deeper = wrap(deepest);
        let error = parser().parse(&deeper.to_string()).unwrap_err();
        let limit = QueryError::TooDeep { limit: 100 };
        assert_eq!((error.kind(), deeper.check()), (&limit.clone().into(), Err(limit)));
    }
}

#[test]
fn boosts_that_are_no_scores_are_refused() {
    let error = parser().boost("b", f32::NAN).parse("a").unwrap_err();
    assert!(matches!(error.kind(), ParseErrorKind::Refused(QueryError::Score { .. })));
}

/// Texts with all characters that have a syntactic meaning.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]{0,3}",
        "[ab \\t+\\-#|&!(){}\\[\\]^\"~*?:\\\\/<>=,é🦀\u{0}\u{3000}]{0,6}",
        prop::sample::select(vec!["AND", "OR", "NOT", "TO", "NEAR", "ORDERED", "ANY", "*", "-1"])
            .prop_map(str::to_owned),
    ]
}

fn spans() -> impl Strategy<Value = Spans> {
    let leaf = prop_oneof![
        texts().prop_map(|text| match text.is_empty() {
            true => Spans::Phrase(text),
            false => Spans::Term(text),
        }),
        texts().prop_map(Spans::Phrase),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(Spans::AnyOf),
            nears(inner).prop_map(Spans::Near),
        ]
    })
}

fn nears(inner: impl Strategy<Value = Spans>) -> impl Strategy<Value = Near> {
    (prop::collection::vec(inner, 2..4), 0..3_u32, any::<bool>())
        .prop_map(|(spans, slop, is_ordered)| Near { spans, slop, is_ordered })
}

fn bounds() -> impl Strategy<Value = Bound<String>> {
    prop_oneof![
        texts().prop_map(Bound::Included),
        texts().prop_map(Bound::Excluded),
        Just(Bound::Unbounded),
    ]
}

fn scores() -> impl Strategy<Value = f32> {
    prop_oneof![0.0..10.0_f32, prop::num::f32::POSITIVE | prop::num::f32::SUBNORMAL, Just(-0.0)]
}

fn weights() -> impl Strategy<Value = f32> {
    prop_oneof![Just(1.0_f32), 0.01..10.0_f32, prop::num::f32::POSITIVE | prop::num::f32::SUBNORMAL]
}

/// Trees in normal form: parsing the printed text returns the same tree.
fn queries() -> impl Strategy<Value = Query> {
    let term = |(field, text): (String, String)| match text.is_empty() {
        // An empty term is printed as a phrase without terms.
        true => Query::phrase(field, text),
        false => Query::term(field, text),
    };
    // A slash in an expression needs no backslash, and a trailing backslash has no meaning.
    let regex = |text: String| {
        let (mut chars, mut pattern) = (text.chars(), String::new());
        while let Some(c) = chars.next() {
            match (c, chars.clone().next()) {
                ('\\', None | Some('/')) => {}
                ('\\', Some(_)) => pattern.extend([Some(c), chars.next()].into_iter().flatten()),
                _ => pattern.push(c),
            }
        }
        pattern
    };
    let leaf = prop_oneof![
        Just(Query::All),
        (texts(), texts()).prop_map(term),
        (texts(), texts(), 0..4_u32).prop_map(|(f, text, slop)| Query::phrase(f, text).slop(slop)),
        (texts(), texts()).prop_map(|(field, prefix)| Query::prefix(field, prefix)),
        (texts(), texts()).prop_map(|(field, pattern)| Query::wildcard(field, pattern)),
        (texts(), texts()).prop_map(move |(field, text)| Query::regex(field, regex(text))),
        (texts(), texts(), 0..=2_u8, 0..3_usize)
            .prop_map(|(f, text, distance, n)| Query::fuzzy(f, text, distance).fuzzy_prefix(n)),
        (texts(), bounds(), bounds()).prop_map(|(f, from, to)| Query::range(f, (from, to))),
        (prop::collection::vec((texts(), weights()), 1..4), texts())
            .prop_map(|(fields, text)| Query::combined(fields, text)),
        (texts(), nears(spans())).prop_map(|(field, near)| Query::near(field, near)),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let some = || prop::collection::vec(inner.clone(), 0..3);
        prop_oneof![
            (inner.clone(), scores()).prop_map(|(query, factor)| query.boost(factor)),
            (inner.clone(), scores()).prop_map(|(query, score)| query.constant_score(score)),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Query::any_of),
            (some(), some(), some(), some(), prop::option::of(0..4_u32)).prop_map(
                |(must, filter, should, must_not, minimum_should_match)| {
                    let boolean =
                        BooleanQuery { must, filter, should, must_not, minimum_should_match };
                    Query::from(boolean)
                }
            ),
        ]
    })
}

fn hostile() -> impl Strategy<Value = String> {
    let tokens = vec![
        "a",
        "b:",
        "(",
        ")",
        "\"",
        "/",
        "\\",
        "AND ",
        " OR ",
        "NOT ",
        "NEAR(",
        "ORDERED(",
        "ANY(",
        "COMBINED(",
        "~",
        "^",
        "=",
        "1",
        "[",
        "{",
        " TO ",
        "]",
        "}",
        "*",
        "?",
        "+",
        "-",
        "#",
        "|",
        "!",
        "&&",
        "||",
        " ",
        "\n",
        "é",
        ":",
        "<",
        ">",
        "2",
    ];
    prop::collection::vec(prop::sample::select(tokens), 0..30).prop_map(|all| all.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn printed_queries_are_parsed_to_the_same(query in queries()) {
        let printed = query.to_string();
        prop_assert_eq!(QueryParser::new(["other"]).parse(&printed), Ok(query), "{}", printed);
    }

    #[test]
    fn any_text_is_a_query_or_an_error(text in prop_oneof![any::<String>(), hostile()]) {
        for operator in [Operator::Or, Operator::And] {
            match QueryParser::new(["b", "c"]).operator(operator).parse(&text) {
                Ok(query) => {
                    prop_assert_eq!(query.check(), Ok(()));
                    let printed = query.to_string();
                    prop_assert_eq!(parser().parse(&printed), Ok(query), "{}", printed);
                }
                Err(error) => {
                    let before = text.get(..error.offset()).unwrap();
                    prop_assert_eq!(error.line(), before.matches('\n').count() + 1);
                    let of_line = before.rsplit('\n').next().unwrap();
                    prop_assert_eq!(error.column(), of_line.chars().count() + 1);
                    prop_assert_eq!(error.to_string().lines().count(), 3);
                }
            }
        }
    }
}

#[test]
fn refused_kinds_of_clauses_are_errors_with_the_clause() {
    use keyloom_text::query::{ClauseKind, ParseErrorKind};
    let kinds = [
        (ClauseKind::Regex, "/a+/", "a*"),
        (ClauseKind::LeadingWildcard, "*a", "a*b"),
        (ClauseKind::LeadingWildcard, "?a", "a?"),
        (ClauseKind::Fuzzy, "a~1", "a~0"),
        (ClauseKind::Proximity, "NEAR(a b)", "\"a b\""),
        (ClauseKind::Proximity, "\"a b\"~1", "\"NEAR(a b)\""),
    ];
    for (kind, refused, allowed) in kinds {
        let parser = QueryParser::new(["x", "y"]).boost("y", 2.0).refuse([kind]);
        let others = kinds.map(|(other, ..)| other).into_iter().filter(|other| *other != kind);
        let parsed = QueryParser::new(["x", "y"]).boost("y", 2.0).refuse(others);
        for (before, after) in [("", ""), ("+b (c OR ", ")"), ("x:(NOT ", "^2)")] {
            let text = format!("{before}{refused}{after}");
            let error = parser.parse(&text).unwrap_err();
            assert_eq!(error.offset(), before.len(), "{error}");
            let ParseErrorKind::RefusedClause { kind: of, clause } = error.kind() else {
                panic!("{error}");
            };
            assert_eq!((*of, &**clause), (kind, &*format!("x:{refused}")));
            parsed.parse(&text).unwrap();
            parser.parse(&format!("{before}{allowed}{after}")).unwrap();
        }
    }
    // Queries for all documents, and for all documents with a field, do not read the dictionary.
    let parser = QueryParser::new(["x"]).refuse([ClauseKind::LeadingWildcard]);
    assert!(["*:*", "*", "x:*"].iter().all(|text| parser.parse(text).is_ok()));
}
