//! Highlighting: the marks are compared with all choices of tokens, the fragments with all windows.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use keyloom_text::analysis::{Analyzer, Synonyms, Tokenizer};
use keyloom_text::{BooleanQuery, Highlighter, Near, Query, QueryError, QueryParser, Spans};
use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

/// The whole text with brackets around the marks of a query in the field `b`.
fn marked(query: &Query, analyzer: &Analyzer, text: &str) -> String {
    let highlighter = Highlighter::new(query, "b", analyzer).unwrap();
    let highlighter = highlighter.whole_text().tags("[", "]").escape_html(false);
    let [fragment] = &highlighter.highlight(text)[..] else { panic!("{text}") };
    assert_eq!(fragment.range, 0..text.len());
    assert_eq!(fragment.marks, highlighter.marks(text));
    fragment.text.clone()
}

#[test]
fn tokens_that_a_query_matches_are_marked() {
    let text = "The White Rabbit put on a white hat; rabbits never hate a white, old rabbit.";
    let expected = [
        (
            "white",
            "The [White] Rabbit put on a [white] hat; rabbits never hate a [white], old rabbit.",
        ),
        (
            "RABBITS",
            "The White [Rabbit] put on a white hat; [rabbits] never hate a white, old [rabbit].",
        ),
        (
            r#""white rabbit""#,
            "The [White] [Rabbit] put on a white hat; rabbits never hate a white, old rabbit.",
        ),
        (
            r#""white rabbit"~1"#,
            "The [White] [Rabbit] put on a [white] hat; [rabbits] never hate a [white], old [rabbit].",
        ),
        (
            r#""hat never""#,
            "The White Rabbit put on a white hat; rabbits never hate a white, old rabbit.",
        ),
        (
            "NEAR(rabbit hat)~1",
            "The White Rabbit put on a white [hat]; [rabbits] never hate a white, old rabbit.",
        ),
        (
            "ORDERED(hat rabbit)",
            "The White Rabbit put on a white [hat]; [rabbits] never hate a white, old rabbit.",
        ),
        (
            "NEAR(\"white rabbit\" put)",
            "The [White] [Rabbit] [put] on a white hat; rabbits never hate a white, old rabbit.",
        ),
        ("ha*", "The White Rabbit put on a white [hat]; rabbits never [hate] a white, old rabbit."),
        ("?ut", "The White Rabbit [put] on a white hat; rabbits never hate a white, old rabbit."),
        (
            "/o(n|ld)/",
            "The White Rabbit put on a white hat; rabbits never hate a white, [old] rabbit.",
        ),
        (
            "oldd~1",
            "The White Rabbit put on a white hat; rabbits never hate a white, [old] rabbit.",
        ),
        (
            "[pa TO q}",
            "The White Rabbit [put] on a white hat; rabbits never hate a white, old rabbit.",
        ),
        (
            "+old #put |never -white",
            "The White Rabbit [put] on a white hat; rabbits [never] hate a white, [old] rabbit.",
        ),
        ("NOT white", text),
        ("*:*", text),
        ("other:white", text),
        (
            "other:wh* (b:old^2)^=3",
            "The White Rabbit put on a white hat; rabbits never hate a white, [old] rabbit.",
        ),
        ("the", text),
    ];
    for (query, expected) in expected {
        let query = QueryParser::new(["b"]).parse(query).unwrap();
        assert_eq!(marked(&query, &Analyzer::english(), text), expected, "{query}");
    }
}

#[test]
fn marks_are_those_of_tokens_of_any_form() {
    let term = |text: &str| Query::term("b", text);
    let names = Analyzer::names();
    assert_eq!(
        marked(&term("zurich"), &names, "in ZÜRICH, Zu\u{308}rich"),
        "in [ZÜRICH], [Zu\u{308}rich]"
    );
    assert_eq!(
        marked(&term("e-mail"), &Analyzer::simple(), "e mail, e-mail"),
        "[e] [mail], [e]-[mail]"
    );
    let grams = Analyzer::new("grams", Tokenizer::ngrams(3..=3).unwrap());
    assert_eq!(marked(&term("bcde"), &grams, "abcdef bcd"), "a[bcde]f bcd");
    assert_eq!(marked(&Query::prefix("b", "bc"), &grams, "abcdef"), "a[bcd]ef");
    let keyword = Analyzer::keyword();
    assert_eq!(marked(&term(" a b"), &keyword, " a b"), "[ a b]");
    let synonyms = Synonyms::new().equivalent(["ny", "new york"]);
    let analyzer = Analyzer::simple().synonyms(&synonyms).unwrap();
    assert_eq!(marked(&term("ny"), &analyzer, "to New York"), "to [New York]");
    assert_eq!(marked(&term("x"), &Analyzer::simple(), ""), "");
}

#[test]
fn texts_are_escaped_and_tags_are_not() {
    let query = Query::term("b", "b");
    let highlighter = Highlighter::new(&query, "b", &Analyzer::simple()).unwrap();
    let highlighter = highlighter.whole_text().tags("<em class=\"x\">", "</em>");
    let text = &highlighter.highlight("<a> & \"B\" 'c'")[0].text;
    assert_eq!(text, "&lt;a&gt; &amp; &quot;<em class=\"x\">B</em>&quot; &#39;c&#39;");
}

#[test]
fn fragments_have_the_most_distinct_terms() {
    let text = "One a here. Two a a a there. Then a and b. Nothing at all. Last b c.";
    let query = QueryParser::new(["b"]).parse("a b c").unwrap();
    let highlighter = Highlighter::new(&query, "b", &Analyzer::simple()).unwrap();
    let highlighter = highlighter.tags("[", "]").fragment_chars(18);
    let texts = |most: usize| {
        let fragments = highlighter.clone().fragments(most).highlight(text);
        fragments.into_iter().map(|fragment| (fragment.text, fragment.terms)).collect::<Vec<_>>()
    };
    let one = |text: &str, terms| (text.to_owned(), terms);
    assert_eq!(texts(1), [one("Then [a] and [b].", 2)]);
    assert_eq!(texts(2), [one("Then [a] and [b].", 2), one("Last [b] [c].", 2)]);
    let three =
        [one("Two [a] [a] [a] there.", 1), one("Then [a] and [b].", 2), one("Last [b] [c].", 2)];
    assert_eq!(texts(3), three);
    assert_eq!(texts(0), []);
    assert_eq!(highlighter.highlight("nothing"), []);
    // A long word is not split, and a fragment at the end is extended to the left.
    let small = highlighter.clone().fragment_chars(3);
    assert_eq!(small.highlight("xyxyxy b")[0].text, "[b]");
    assert_eq!(highlighter.highlight("One two. Three four. b")[0].text, "Three four. [b]");
}

#[test]
fn bad_queries_are_refused() {
    let refused = |query: &Query| Highlighter::new(query, "b", &Analyzer::simple()).unwrap_err();
    assert!(matches!(refused(&Query::regex("b", "(")), QueryError::Pattern { .. }));
    assert!(matches!(refused(&Query::All.boost(-1.0)), QueryError::Score { .. }));
    // A pattern of another field is not compiled.
    assert!(Highlighter::new(&Query::regex("x", "("), "b", &Analyzer::simple()).is_ok());
}

/// Backtracking without a bound would take years on this input.
#[test]
fn common_words_and_long_phrases_end() {
    let text = "a b ".repeat(3_000);
    let marks = |query: Query| {
        Highlighter::new(&query, "b", &Analyzer::simple()).unwrap().marks(&text).len()
    };
    let many = Near::unordered(["a"; 12]).slop(1_000);
    assert_eq!(marks(Query::near("b", many.clone())), 3_000);
    let nested = Near::unordered([Spans::from(many), "c".into()]).slop(5);
    assert_eq!(marks(Query::near("b", nested)), 0);
    assert_eq!(marks(Query::phrase("b", "a b ".repeat(100))), 6_000);
    assert!(marks(Query::phrase("b", "a b ".repeat(2_000))) >= 4_000);
    let sentences = "a. ".repeat(10_000);
    for (size, marked) in [(0, 3), (3, 3), (300, 300), (usize::MAX, 10_000)] {
        let highlighter = Highlighter::new(&Query::term("b", "a"), "b", &Analyzer::simple());
        let fragments = highlighter.unwrap().fragment_chars(size).highlight(&sentences);
        assert_eq!(fragments.iter().map(|one| one.marks.len()).sum::<usize>(), marked, "{size}");
    }
}

/// A match: its first position, the position after its last one, and all of its tokens.
type Found = (usize, usize, BTreeSet<usize>);

fn phrase(text: &str, words: &[String]) -> Vec<Found> {
    let wanted: Vec<&str> = text.split_whitespace().collect();
    let windows = words.windows(wanted.len()).enumerate();
    let found = windows.filter(|(_, window)| *window == wanted);
    found.map(|(at, window)| (at, at + window.len(), (at..at + window.len()).collect())).collect()
}

/// All matches, found by trying all choices.
fn naive(spans: &Spans, words: &[String]) -> Vec<Found> {
    match spans {
        Spans::Term(text) | Spans::Phrase(text) => phrase(text, words),
        Spans::AnyOf(all) => all.iter().flat_map(|spans| naive(spans, words)).collect(),
        Spans::Near(near) => naive_near(near, words),
        _ => unreachable!(),
    }
}

fn naive_near(near: &Near, words: &[String]) -> Vec<Found> {
    let children: Vec<Vec<Found>> = near.spans.iter().map(|spans| naive(spans, words)).collect();
    let mut found = Vec::new();
    for choice in choices(&children) {
        let is_apart = |a: &Found, b: &Found| a.1 <= b.0 || !near.is_ordered && b.1 <= a.0;
        let pairs = (0..choice.len()).flat_map(|b| (0..b).map(move |a| (a, b)));
        let (start, end) = extent(&choice);
        let covered: usize = choice.iter().map(|one| one.1 - one.0).sum();
        if pairs.into_iter().all(|(a, b)| is_apart(&choice[a], &choice[b]))
            && end - start - covered <= near.slop as usize
        {
            found.push((start, end, choice.into_iter().flat_map(|one| one.2).collect()));
        }
    }
    found
}

fn extent(choice: &[Found]) -> (usize, usize) {
    let starts = choice.iter().map(|one| one.0);
    (starts.min().unwrap(), choice.iter().map(|one| one.1).max().unwrap())
}

fn choices<T: Clone>(children: &[Vec<T>]) -> Vec<Vec<T>> {
    children.iter().fold(vec![Vec::new()], |choices, of_child| {
        let with = |choice: &Vec<T>, one: &T| {
            let mut choice = choice.clone();
            choice.push(one.clone());
            choice
        };
        let longer =
            |choice: &Vec<T>| of_child.iter().map(|one| with(choice, one)).collect::<Vec<_>>();
        choices.iter().flat_map(longer).collect()
    })
}

/// The tokens of a phrase with slop, by its definition.
fn naive_phrase(text: &str, slop: u32, words: &[String]) -> BTreeSet<usize> {
    let wanted: Vec<&str> = text.split_whitespace().collect();
    let positions: Vec<Vec<usize>> = wanted
        .iter()
        .map(|wanted| (0..words.len()).filter(|at| words[*at] == *wanted).collect())
        .collect();
    let mut all = BTreeSet::new();
    for choice in choices(&positions).into_iter().filter(|choice| !choice.is_empty()) {
        let shifted = || choice.iter().enumerate().map(|(place, at)| *at as i64 - place as i64);
        let distance = shifted().max().unwrap() - shifted().min().unwrap();
        let distinct: BTreeSet<usize> = choice.iter().copied().collect();
        if distance <= i64::from(slop) && distinct.len() == choice.len() {
            all.extend(distinct);
        }
    }
    all
}

/// The tokens that a query marks, by the definition.
fn naive_tokens(query: &Query, words: &[String]) -> BTreeSet<usize> {
    let matching = |matches: &dyn Fn(&str) -> bool| {
        (0..words.len()).filter(|at| matches(&words[*at])).collect::<BTreeSet<usize>>()
    };
    match query {
        Query::Term { text, .. } => matching(&|word| word == text),
        // A query for the existence of a field marks no words.
        Query::Prefix { prefix, .. } if prefix.is_empty() => BTreeSet::new(),
        Query::Prefix { prefix, .. } => matching(&|word| word.starts_with(&**prefix)),
        Query::Phrase { text, slop, .. } => naive_phrase(text, *slop, words),
        Query::Combined { fields, text } => {
            let is_marked = fields.iter().any(|(field, _)| field == "b");
            matching(&|word| is_marked && text.split(' ').any(|other| other == word))
        }
        Query::Near { near, .. } => {
            naive_near(near, words).into_iter().flat_map(|found| found.2).collect()
        }
        Query::Boolean(BooleanQuery { must, filter, should, .. }) => {
            let clauses = must.iter().chain(filter).chain(should);
            clauses.flat_map(|clause| naive_tokens(clause, words)).collect()
        }
        _ => unreachable!(),
    }
}

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "ab", "é"]).prop_map(str::to_owned)
}

fn phrases() -> impl Strategy<Value = String> {
    prop::collection::vec(word(), 1..4).prop_map(|words| words.join(" "))
}

fn spans() -> impl Strategy<Value = Spans> {
    let leaf = prop_oneof![word().prop_map(Spans::Term), phrases().prop_map(Spans::Phrase)];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..3).prop_map(Spans::AnyOf),
            nears(inner).prop_map(Spans::Near),
        ]
    })
}

fn nears(inner: impl Strategy<Value = Spans>) -> impl Strategy<Value = Near> {
    (prop::collection::vec(inner, 2..4), 0..4_u32, any::<bool>())
        .prop_map(|(spans, slop, is_ordered)| Near { spans, slop, is_ordered })
}

fn queries() -> impl Strategy<Value = Query> {
    let part = prop_oneof![
        word().prop_map(|text| Query::term("b", text)),
        word().prop_map(|text| Query::prefix("b", text)),
        (phrases(), 0..4_u32).prop_map(|(text, slop)| Query::phrase("b", text).slop(slop)),
        nears(spans()).prop_map(|near| Query::near("b", near)),
        phrases().prop_map(|text| Query::combined([("c", 1.0), ("b", 2.0)], text)),
        phrases().prop_map(|text| Query::combined([("c", 1.0)], text)),
        Just(Query::exists("b")),
    ];
    let some = |n| prop::collection::vec(part.clone(), 0..n);
    (some(3), some(2), some(2), some(2)).prop_map(|(must, filter, should, must_not)| {
        BooleanQuery { must, filter, should, must_not, minimum_should_match: None }.into()
    })
}

fn boxed<T: std::fmt::Debug>(strategy: impl Strategy<Value = T> + 'static) -> BoxedStrategy<T> {
    strategy.boxed()
}

/// The chosen windows, each found by a scan over all windows.
fn naive_fragments(
    text: &str,
    terms: &BTreeMap<usize, String>,
    size: usize,
    most: usize,
) -> Vec<Range<usize>> {
    let chars = |range: Range<usize>| text[range].chars().count();
    let mut pieces: Vec<Range<usize>> = Vec::new();
    for (start, sentence) in text.split_sentence_bound_indices() {
        if chars(start..start + sentence.len()) <= size {
            pieces.push(start..start + sentence.len());
            continue;
        }
        let mut from = start;
        for (at, word) in sentence.split_word_bound_indices() {
            let (at, end) = (start + at, start + at + word.len());
            if at > from && chars(from..end) > size {
                pieces.push(from..at);
                from = at;
            }
        }
        pieces.push(from..start + sentence.len());
    }
    let inside =
        |range: &Range<usize>| terms.range(range.clone()).map(|(_, term)| term).collect::<Vec<_>>();
    let mut windows = Vec::new();
    for at in (0..pieces.len()).filter(|at| !inside(&pieces[*at]).is_empty()) {
        let fits = |from: usize, to: usize| chars(pieces[from].start..pieces[to].end) <= size;
        let last =
            (at..pieces.len()).take_while(|last| *last == at || fits(at, *last)).last().unwrap();
        let first = (0..=at).find(|first| *first == at || fits(*first, last)).unwrap();
        let range = pieces[first].start..pieces[last].end;
        let all = inside(&range);
        let distinct: BTreeSet<_> = all.iter().collect();
        windows.push((distinct.len(), all.len(), range));
    }
    let mut chosen: Vec<Range<usize>> = Vec::new();
    while chosen.len() < most {
        windows.retain(|(_, _, one)| {
            chosen.iter().all(|other| one.end <= other.start || other.end <= one.start)
        });
        let best = windows
            .iter()
            .max_by_key(|(terms, marks, range)| (*terms, *marks, std::cmp::Reverse(range.start)));
        let Some((_, _, range)) = best else { break };
        chosen.push(range.clone());
    }
    chosen.sort_by_key(|range| range.start);
    let trimmed = |range: Range<usize>| {
        let (part, end) = (&text[range.clone()], range.end);
        end - part.trim_start().len()..range.start + part.trim_end().len()
    };
    chosen.into_iter().map(trimmed).collect()
}

fn sentences() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "a",
        "b",
        "c",
        "d",
        "eee",
        "ffffff",
        "é",
        "a.",
        "x.",
        "yyy!",
        "中文。",
        "z?\n",
        "(b)",
        "🦀",
    ]);
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn marks_are_the_tokens_of_all_matches(
        query in boxed(queries()),
        words in prop::collection::vec(word(), 0..12),
        separator in prop::sample::select(vec![" ", ", ", " - "]),
    ) {
        let text = words.join(separator);
        let highlighter = Highlighter::new(&query, "b", &Analyzer::simple()).unwrap();
        let mut at = 0;
        let ranges: Vec<Range<usize>> = words.iter().map(|word| {
            let range = at..at + word.len();
            at = range.end + separator.len();
            range
        }).collect();
        let expected: Vec<Range<usize>> =
            naive_tokens(&query, &words).into_iter().map(|at| ranges[at].clone()).collect();
        prop_assert_eq!(highlighter.marks(&text), expected, "{} in {}", query, text);
    }

    #[test]
    fn fragments_are_the_best_windows(
        text in sentences(),
        size in 0_usize..40,
        most in 0_usize..5,
    ) {
        let query = Query::any_of(["a", "b", "é"].map(|text| Query::term("b", text)));
        let highlighter = Highlighter::new(&query, "b", &Analyzer::simple()).unwrap();
        let terms: BTreeMap<usize, String> =
            highlighter.marks(&text).into_iter().map(|mark| (mark.start, text[mark].to_owned())).collect();
        let fragments = highlighter.fragment_chars(size).fragments(most).highlight(&text);
        let ranges: Vec<Range<usize>> =
            fragments.iter().map(|fragment| fragment.range.clone()).collect();
        prop_assert_eq!(ranges, naive_fragments(&text, &terms, size, most));
        for fragment in fragments {
            let of = terms.range(fragment.range.clone());
            let starts: Vec<usize> = fragment.marks.iter().map(|mark| mark.start).collect();
            prop_assert!(starts.iter().eq(of.clone().map(|(start, _)| start)));
            let distinct: BTreeSet<&String> = of.map(|(_, term)| term).collect();
            prop_assert_eq!(distinct.len(), fragment.terms);
            let plain = fragment.text.replace("<mark>", "").replace("</mark>", "");
            prop_assert_eq!(&plain, &text[fragment.range.clone()]);
        }
    }

    #[test]
    fn any_text_and_analyzer_have_marks_at_characters(
        text in any::<String>(),
        words in "[a-z]{1,2}( [a-z]{1,2}){0,2}",
        size in 0_usize..30,
    ) {
        let grams = Analyzer::new("grams", Tokenizer::ngrams(1..=3).unwrap()).lower_case();
        for analyzer in [Analyzer::english(), Analyzer::paths(), Analyzer::keyword(), grams] {
            let query = Query::any_of([
                Query::term("b", text.chars().take(3).collect::<String>()),
                Query::phrase("b", words.clone()).slop(1),
                Query::range("b", "\u{80}".to_owned()..),
            ]);
            let highlighter = Highlighter::new(&query, "b", &analyzer).unwrap();
            let marks = highlighter.marks(&text);
            prop_assert!(marks.windows(2).all(|pair| pair[0].end <= pair[1].start));
            prop_assert!(marks.iter().all(|mark| text.get(mark.clone()).is_some()));
            let fragments = highlighter.fragment_chars(size).highlight(&text);
            prop_assert_eq!(fragments.is_empty(), marks.is_empty());
            for fragment in fragments {
                prop_assert!(text.get(fragment.range.clone()).is_some());
                prop_assert!(fragment.marks.iter().all(|mark| marks.contains(mark)));
            }
        }
    }
}
