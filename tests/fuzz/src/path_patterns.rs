//! Paths and path patterns: any text is parsed or is refused at one of its characters. Printed text
//! is parsed to the same value, and a scan finds the same paths as a match of each path.

use std::sync::LazyLock;

use arbitrary::{Arbitrary, Unstructured};
use keyloom::{Memory, Order, Store, Subspace, Writer};
use keyloom_patterns::in_order;
use keyloom_patterns::trees::path::{
    LabelPath, Lquery, Ltxtquery, PathError, PathPattern, PathRegex, PathTokenizer, Paths,
};

struct Fixture {
    store: Memory,
    paths: Paths,
    stored: Vec<LabelPath>,
}

static WHOLE: LazyLock<Fixture> = LazyLock::new(|| fixture(None));
static WITH_A_HOLE: LazyLock<Fixture> = LazyLock::new(|| fixture(Some("a.ab")));

/// Paths of up to three labels, and a store that contains all of them, except `lacks`.
fn fixture(lacks: Option<&str>) -> Fixture {
    const LABELS: [&str; 5] = ["a", "ab", "b_A", "", "\0"];
    let mut stored = vec![LabelPath::root()];
    let mut from = 0;
    for _ in 0..3 {
        let until = stored.len();
        for at in from..until {
            stored.extend(LABELS.map(|label| stored[at].child(label).unwrap()));
        }
        from = until;
    }
    stored.sort();
    let (store, paths) = (Memory::new(), Paths::new(&Subspace::new("paths")));
    let lacks: Option<LabelPath> = lacks.map(|path| path.parse().unwrap());
    store
        .transact(|txn| {
            let mut there = stored.iter().filter(|path| lacks.as_ref() != Some(path));
            there.try_for_each(|path| txn.put(&paths.key(path, ()), b""))
        })
        .unwrap();
    Fixture { store, paths, stored }
}

pub(crate) fn path_patterns(data: &[u8]) {
    holds(data, &WHOLE);
}

/// A control: a scan that omits one path.
pub(crate) fn with_a_scan_that_leaves_out(data: &[u8]) {
    holds(data, &WITH_A_HOLE);
}

fn holds(data: &[u8], fixture: &Fixture) {
    let text = String::from_utf8_lossy(data);
    if let Some(path) = parsed::<LabelPath>(&text) {
        let below = Lquery::descendants_of(&path);
        assert!(below.matches(&path));
        assert_eq!(below.to_string().parse(), Ok(below));
        assert_eq!(keyloom::unpack::<LabelPath>(&keyloom::pack(&path)).unwrap(), path);
    }
    if let Some(query) = parsed::<Lquery>(&text) {
        scan(fixture, &query.clone().into(), |path| query.matches(path));
    }
    if let Some(query) = parsed::<Ltxtquery>(&text) {
        scan(fixture, &query.clone().into(), |path| query.matches(path));
    }
    if let Ok(regex) = PathRegex::new(&text, '/') {
        scan(fixture, &regex.clone().into(), |path| regex.matches(path));
    }
    tokens(&text, &mut Unstructured::new(data));
}

/// Parses a text, if it is valid.
fn parsed<T>(text: &str) -> Option<T>
where
    T: std::str::FromStr<Err = PathError> + std::fmt::Display + std::fmt::Debug + PartialEq,
{
    let value: T = match text.parse() {
        Ok(value) => value,
        Err(PathError::Syntax { position, problem, .. }) => {
            assert!((1..=text.chars().count() + 1).contains(&position), "{position}: {problem}");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let written = value.to_string();
    let again: T = written.parse().unwrap_or_else(|error| panic!("{written:?}: {error}"));
    assert_eq!(again.to_string(), written);
    assert_eq!(again, value, "{written:?}");
    Some(value)
}

/// `matches` tests each path alone, and does not depend on what a scan may skip.
fn scan(fixture: &Fixture, pattern: &PathPattern, matches: impl Fn(&LabelPath) -> bool) {
    let Fixture { store, paths, stored } = fixture;
    let snapshot = store.snapshot().unwrap();
    let expected: Vec<_> = stored.iter().filter(|path| matches(path)).collect();
    assert!(stored.iter().all(|path| pattern.matches(path) == matches(path)), "{pattern}");
    let found = |order| {
        let found = paths.matching(&snapshot, in_order(pattern, order)).unwrap();
        found.map(|found| found.unwrap().path().unwrap()).collect::<Vec<_>>()
    };
    assert!(found(Order::Ascending).iter().eq(expected.iter().copied()), "{pattern}");
    assert!(found(Order::Descending).iter().eq(expected.iter().rev().copied()), "{pattern}");
}

fn tokens(text: &str, input: &mut Unstructured<'_>) {
    let Ok((skip, is_reverse)) = <(u8, bool)>::arbitrary(input) else { return };
    let tokenizer = PathTokenizer::new().skip(usize::from(skip % 3));
    let tokenizer = if is_reverse { tokenizer.reverse() } else { tokenizer };
    let (path, tokens) = (tokenizer.path(text), tokenizer.tokens(text));
    assert_eq!(path.nlevel(), tokens.len());
    assert!(tokens.iter().all(|token| tokenizer.path_of_token(token).is_ancestor_of(&path)));
}
