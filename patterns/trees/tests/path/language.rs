//! The pattern languages, compared with the published documentation and with a naive matcher.

use fastrand::Rng;
use keyloom_trees::path::{
    LabelPath, Lquery, Ltxtquery, MAX_LABEL_CHARS, MAX_LABELS, PathError, PathPattern, PathRegex,
    SyntaxProblem, first_ancestor, first_descendant, first_match,
};

use crate::naive::{self, Condition};

/// The paths of the examples in PostgreSQL's documentation, F.23.4.
pub const TOPICS: [&str; 13] = [
    "Top",
    "Top.Science",
    "Top.Science.Astronomy",
    "Top.Science.Astronomy.Astrophysics",
    "Top.Science.Astronomy.Cosmology",
    "Top.Hobbies",
    "Top.Hobbies.Amateurs_Astronomy",
    "Top.Collections",
    "Top.Collections.Pictures",
    "Top.Collections.Pictures.Astronomy",
    "Top.Collections.Pictures.Astronomy.Stars",
    "Top.Collections.Pictures.Astronomy.Galaxies",
    "Top.Collections.Pictures.Astronomy.Astronauts",
];

pub fn path(text: &str) -> LabelPath {
    text.parse().unwrap()
}

pub fn lquery(text: &str) -> PathPattern {
    text.parse::<Lquery>().unwrap().into()
}

pub fn ltxtquery(text: &str) -> PathPattern {
    text.parse::<Ltxtquery>().unwrap().into()
}

fn of_topics(pattern: &PathPattern) -> Vec<&'static str> {
    TOPICS.into_iter().filter(|topic| pattern.matches(&path(topic))).collect()
}

#[test]
fn the_examples_of_the_documentation_hold() {
    let below_science = &TOPICS[1..5];
    assert_eq!(of_topics(&PathPattern::descendants_of(&path("Top.Science"))), below_science);
    assert_eq!(of_topics(&lquery("*.Astronomy.*")), [&TOPICS[2..5], &TOPICS[9..13]].concat(),);
    assert_eq!(of_topics(&lquery("*.!pictures@.Astronomy.*")), TOPICS[2..5]);
    assert_eq!(
        of_topics(&ltxtquery("Astro*% & !pictures@")),
        [&TOPICS[2..5], &TOPICS[6..7]].concat(),
    );
    assert_eq!(of_topics(&ltxtquery("Astro* & !pictures@")), TOPICS[2..5]);
    let space = |topic: &str| {
        let topic = path(topic);
        let (above, below) = (topic.subpath(0, 2).unwrap(), topic.subpath_from(2).unwrap());
        above.concat(&path("Space")).unwrap().concat(&below).unwrap().to_string()
    };
    assert_eq!(space(TOPICS[3]), "Top.Science.Space.Astronomy.Astrophysics");
    assert_eq!(of_topics(&PathPattern::ancestors_of(&path(TOPICS[3]))), TOPICS[..4]);
}

/// Patterns from the text of the documentation, with paths that match and paths that do not.
#[test]
fn the_patterns_of_the_documentation_mean_what_it_says() {
    let russia = "Top.*{0,2}.sport*@.!football|tennis{1,}.Russ*|Spain";
    let cases = [
        ("foo", "foo", "foo.bar"),
        ("*.foo.*", "a.foo.b", "a.b"),
        ("*.foo", "a.b.foo", "foo.a"),
        ("*{2}", "a.b", "a"),
        ("*{2,}", "a.b.c", "a"),
        ("*{1,2}", "a", "a.b.c"),
        ("*{,2}", "a.b", "a.b.c"),
        ("foo{2,3}", "foo.foo", "foo"),
        ("foo{,}", "foo.foo.foo.foo", "foo.bar"),
        ("sport@", "SPORT", "sports"),
        ("foo*", "foobar", "fo"),
        ("foo_bar%", "foo_bar_baz", "foo_barbaz"),
        ("foo_bar%*", "foo1_bar2_baz", "foo1_br2_baz"),
        ("foo_bar%@", "Bar_x_FOO", "foo_barbaz"),
        (russia, "Top.Sports.x.y.Russian", "Top.Sports.football.Russia"),
        (russia, "Top.a.b.SPORT.x.Spain", "Top.a.b.c.Sport.x.Spain"),
        (russia, "Top.sport.handball.Spain", "Top.sport.Spain"),
    ];
    for (text, yes, no) in cases {
        assert!(lquery(text).matches(&path(yes)), "{text} {yes}");
        assert!(!lquery(text).matches(&path(no)), "{text} {no}");
    }
    let query = ltxtquery("Europe & Russia*@ & !Transportation");
    assert!(query.matches(&path("x.RUSSIAN.Europe")));
    assert!(!query.matches(&path("Europe.Transportation.Russia")));
    assert!(!query.matches(&path("Europe.Russi")));
}

#[test]
fn patterns_match_what_a_naive_matcher_matches() {
    let mut rng = Rng::with_seed(11);
    let mut matched = [0; 2];
    for _ in 0..10_000 {
        let (items, labels) = (naive::lquery(&mut rng), naive::path(&mut rng));
        let text = naive::lquery_text(&items, &mut rng);
        let expected = naive::lquery_matches(&items, &labels);
        let path = LabelPath::new(labels.clone()).unwrap();
        let query: Lquery = text.parse().unwrap();
        assert_eq!(query.matches(&path), expected, "{path} ~ {text}");
        assert_eq!(PathPattern::from(query).matches(&path), expected, "{path} ~ {text}");
        matched[0] += u32::from(expected);

        let condition = Condition::random(&mut rng, 3);
        let text = condition.text(&mut rng);
        let expected = condition.matches(&labels);
        let query: Ltxtquery = text.parse().unwrap();
        assert_eq!(query.matches(&path), expected, "{path} @ {text}");
        assert_eq!(PathPattern::from(query).matches(&path), expected, "{path} @ {text}");
        matched[1] += u32::from(expected);
    }
    // In both languages, patterns often match and often do not.
    assert!(matched.iter().all(|count| (1_000..9_000).contains(count)), "{matched:?}");
}

#[test]
fn what_is_written_is_parsed_to_the_same() {
    let mut rng = Rng::with_seed(12);
    let strange =
        ["", "a.b", "\"", "\\", "a b", "\0", "\u{7f}", "é", "*", "a|b", "{2}", "\n", "x-y", "٣"];
    for _ in 0..3_000 {
        let labels: Vec<&str> =
            (0..rng.usize(..5)).map(|_| strange[rng.usize(..strange.len())]).collect();
        let path = LabelPath::new(labels.clone()).unwrap();
        let text = path.to_string();
        assert_eq!(text.parse::<LabelPath>().unwrap(), path, "{text}");
        assert_eq!(path.labels().collect::<Vec<_>>(), labels);
        assert!(!text.contains('\0'));
        // Patterns that match exactly one path, whatever its labels are.
        let below = Lquery::descendants_of(&path);
        assert_eq!(below.to_string().parse::<Lquery>().unwrap(), below);
        assert!(below.matches(&path));

        let items = naive::lquery(&mut rng);
        let query: Lquery = naive::lquery_text(&items, &mut rng).parse().unwrap();
        assert_eq!(query.to_string().parse::<Lquery>().unwrap(), query);
        let condition = Condition::random(&mut rng, 3);
        let query: Ltxtquery = condition.text(&mut rng).parse().unwrap();
        let again: Ltxtquery = query.to_string().parse().unwrap();
        assert_eq!(again, query);
        assert_eq!(again.to_string(), query.to_string());
        let labels = naive::path(&mut rng);
        assert_eq!(
            again.matches(&LabelPath::new(labels.clone()).unwrap()),
            condition.matches(&labels)
        );
    }
}

#[test]
fn labels_may_be_any_text() {
    let path = LabelPath::new(["", "usr", "a.b", "x\0y", "\"q\""]).unwrap();
    assert_eq!(path.to_string(), r#""".usr."a.b"."x\u{0}y"."\"q\"""#);
    assert!(lquery(r#"*."a.b".*"#).matches(&path));
    assert!(lquery(r#"*."a."*.*{2}"#).matches(&path));
    assert!(ltxtquery(r#""X\0Y"@ & !"a b""#).matches(&path));
    assert_eq!(
        r#""\u{e9}"."\\""#.parse::<LabelPath>().unwrap(),
        LabelPath::new(["é", "\\"]).unwrap()
    );
}

fn syntax(outcome: Result<impl std::fmt::Debug, PathError>) -> (usize, SyntaxProblem) {
    match outcome {
        Err(PathError::Syntax { position, problem, .. }) => (position, problem),
        other => panic!("{other:?} is no syntax error"),
    }
}

#[test]
fn errors_name_the_character_and_what_is_wrong_there() {
    use SyntaxProblem::{
        BadEscape, CountTooLarge, EmptyLabel, LabelTooLong, LowAboveHigh, NestedTooDeep,
        TooManyItems, Unexpected, UnexpectedEnd,
    };
    let long = "x".repeat(MAX_LABEL_CHARS + 1);
    let too_long = LabelTooLong { chars: MAX_LABEL_CHARS + 1, limit: MAX_LABEL_CHARS };
    let paths = [
        ("a..b", 3, Unexpected('.')),
        (".a", 1, Unexpected('.')),
        ("a.", 3, UnexpectedEnd),
        ("a b", 2, Unexpected(' ')),
        ("é.é!", 4, Unexpected('!')),
        ("\"a", 3, UnexpectedEnd),
        (r#"a."\x""#, 4, BadEscape),
        (r#""\u{110000}""#, 2, BadEscape),
        (r#""\u{}""#, 2, BadEscape),
        (&long, MAX_LABEL_CHARS + 2, too_long),
    ];
    let is_of_a_path =
        matches!("a b".parse::<LabelPath>(), Err(PathError::Syntax { notation: "path", .. }));
    assert!(is_of_a_path);
    for (text, position, problem) in paths {
        assert_eq!(syntax(text.parse::<LabelPath>()), (position, problem), "{text}");
    }
    let lqueries = [
        ("", 1, UnexpectedEnd),
        ("a|", 3, UnexpectedEnd),
        ("a||b", 3, Unexpected('|')),
        ("!", 2, EmptyLabel),
        ("!@.a", 2, EmptyLabel),
        ("a@b", 3, Unexpected('b')),
        ("*a", 2, Unexpected('a')),
        ("a{2", 4, UnexpectedEnd),
        ("a{}", 3, Unexpected('}')),
        ("a.*{3,2}", 7, LowAboveHigh { low: 3, high: 2 }),
        ("*{65536}", 3, CountTooLarge { limit: MAX_LABELS }),
        ("*{2}x", 5, Unexpected('x')),
    ];
    for (text, position, problem) in lqueries {
        assert_eq!(syntax(text.parse::<Lquery>()), (position, problem), "{text}");
    }
    let deep = "!".repeat(101) + "a";
    let ltxtqueries = [
        ("", 1, UnexpectedEnd),
        ("a b", 3, Unexpected('b')),
        ("(a", 3, UnexpectedEnd),
        ("a)", 2, Unexpected(')')),
        ("a & | b", 5, Unexpected('|')),
        ("a@b", 3, Unexpected('b')),
        (&deep, 101, NestedTooDeep { limit: 100 }),
    ];
    for (text, position, problem) in ltxtqueries {
        assert_eq!(syntax(text.parse::<Ltxtquery>()), (position, problem), "{text}");
    }
    let many = "a.".repeat(MAX_LABELS) + "a";
    assert_eq!(syntax(many.parse::<LabelPath>()).1, TooManyItems { limit: MAX_LABELS });
    assert!(many[2..].parse::<LabelPath>().is_ok());
    assert_eq!(syntax(many.parse::<Lquery>()).1, TooManyItems { limit: MAX_LABELS });
    assert!(matches!(
        many[2..].parse::<LabelPath>().unwrap().child("a"),
        Err(PathError::TooManyLabels { labels: 65_536, limit: MAX_LABELS })
    ));
    assert!(matches!(LabelPath::new([long]), Err(PathError::LabelTooLong { chars: 1_001, .. })));
    let said = "a.*{3,2}".parse::<Lquery>().unwrap_err().to_string();
    assert_eq!(
        said,
        r#"the lquery "a.*{3,2}" is invalid at character 7: the lower bound 3 is above the upper bound 2"#
    );
}

#[test]
fn patterns_of_more_than_their_bounds_are_refused() {
    let ranges = |n: usize| vec!["a{0,1}"; n].join(".");
    let problem = |text: &str| match text.parse::<Lquery>() {
        Err(PathError::Syntax { position, problem, .. }) => (position, problem),
        other => panic!("{other:?}"),
    };
    let limit = 1_000;
    assert_eq!(problem(&ranges(4_000)), (7_001, SyntaxProblem::TooManyRanges { limit }));
    let longest: Lquery = ranges(limit).parse().unwrap();
    assert!(longest.matches(&LabelPath::new(vec!["a"; limit]).unwrap()));
    assert!(!longest.matches(&LabelPath::new(vec!["a"; limit + 1]).unwrap()));
    // Items with a fixed number of repetitions, or with any number, do not count.
    assert!("a{2}.*.".repeat(2_000).trim_end_matches('.').parse::<Lquery>().is_ok());
    let words = |separator: &str| vec!["a"; MAX_LABELS + 1].join(separator);
    let many = SyntaxProblem::TooManyItems { limit: MAX_LABELS };
    assert_eq!(problem(&words("|")).1, many);
    assert_eq!(problem(&words("|b.")).1, many);
    assert!(matches!(
        words("|").parse::<Ltxtquery>(),
        Err(PathError::Syntax { problem, .. }) if problem == many
    ));

    let refusal = |expression: &str| PathRegex::new(expression, '/').unwrap_err().to_string();
    let long = refusal(&"a".repeat(1 << 20));
    assert!(long.contains("has 1048576 bytes, the limit is 65536"), "{long}");
    assert!(long.len() < 300, "an error repeats the beginning only");
    let deep = refusal(&("(".repeat(1_000) + &")".repeat(1_000)));
    assert!(deep.contains("250"), "{deep}");
    assert!(refusal("((a{1000}){1000}){1000}").contains("let it count less"));
}

#[test]
fn the_first_of_many_paths_is_taken() {
    let paths: Vec<LabelPath> = TOPICS.map(path).into();
    assert_eq!(first_ancestor(&paths[1..], &path("Top.Hobbies.x")), Some(&paths[5]));
    assert_eq!(first_descendant(&paths, &path("Top.Collections")), Some(&paths[7]));
    assert_eq!(first_match(&paths, &lquery("*.Pict*.*{2}")), Some(&paths[10]));
    assert_eq!(first_match(&paths, &ltxtquery("none")), None);
    let either = PathPattern::any_of(["Top".parse().unwrap(), "*.Stars".parse().unwrap()]);
    assert_eq!(of_topics(&either), [TOPICS[0], TOPICS[10]]);
    assert!(of_topics(&PathPattern::any_of([])).is_empty());
}

#[test]
fn expressions_match_whole_paths_or_are_refused() {
    let regex = PathRegex::new("usr/(lib|bin)/[^/]*", '/').unwrap();
    assert!(regex.matches(&LabelPath::new(["usr", "lib", "x"]).unwrap()));
    assert!(!regex.matches(&LabelPath::new(["usr", "lib", "x", "y"]).unwrap()));
    // The path would have the text of another path.
    assert!(!regex.matches(&LabelPath::new(["usr/lib", "x"]).unwrap()));
    for (expression, why) in
        [("(", "unclosed group"), (r"\bx", r"write (?-u:\b) for \b"), (r"(?-u:\xff)", "UTF-8")]
    {
        let Err(PathError::Regex { expression: said, why: because }) =
            PathRegex::new(expression, '/')
        else {
            panic!("{expression}")
        };
        assert_eq!(said, expression);
        assert!(because.contains(why), "{because}");
    }
    for large in [r"\w{400}", "[a-z]*x[a-z]{20}"] {
        let error = PathRegex::new(large, '/').unwrap_err().to_string();
        assert!(error.contains("cannot be used") && error.contains("let it count less"), "{error}");
    }
    assert!(PathRegex::new("x", 'é').unwrap_err().to_string().contains("ASCII"));
}
