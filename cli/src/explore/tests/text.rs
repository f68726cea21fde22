//! Terms and documents of a text index, compared with the texts that the test wrote.

use keyloom_kit::RecordKey;
use keyloom_text::{Analyzer, TextIndex};

use super::*;

pub(super) const TEXTS: usize = 500;

pub(super) fn of_term(term: &str) -> Params {
    Params { term: term.into(), ..named("library/texts.words") }
}

/// Each text has "all" once to three times, and some have other terms.
fn words(n: usize) -> String {
    let often = "all ".repeat(n % 3 + 1);
    let seventh = if n.is_multiple_of(7) { "seven" } else { "other" };
    let hostile = if n == 5 { "h'<b>x</b>\u{1b} ünï seventh" } else { "" };
    format!("{often} {seventh} {hostile} {}", "rare".repeat(usize::from(n == 400)))
}

pub(super) fn filled<K: RecordKey + Clone + 'static>(
    keys: &[K],
    make: impl Fn(&keyloom::Subspace) -> TextIndex<K, String>,
) -> Large {
    let store = Metered::new(Memory::new());
    let schema = Schema::open(&store, "library").unwrap();
    let texts = schema.table::<K, String>("texts").unwrap();
    let index = |space: &keyloom::Subspace| {
        let simple = Analyzer::simple();
        Ok(make(space).field("text", simple, |_, text: &String, add| add(text)))
    };
    schema.derive(&texts, "words", 1, index).unwrap();
    let records = keys.iter().cloned().enumerate().map(|(n, key)| (key, words(n)));
    store.transact(|txn| texts.put_many(txn, records.clone())).unwrap();
    Large::of(store)
}

fn counts(found: &Value) -> Vec<(&str, i64)> {
    let terms = found["terms"].as_array().unwrap().iter();
    terms.map(|one| (one["term"].as_str().unwrap(), one["documents"].as_i64().unwrap())).collect()
}

/// The documents shown: the number of the text, by the key of its record, and the frequency.
fn documents<K: RecordKey>(large: &Large, keys: &[K], found: &Value) -> Vec<(usize, u64)> {
    let schema = Schema::open(&large.store, "library").unwrap();
    let texts = schema.table::<K, String>("texts").unwrap();
    let known: Vec<_> = keys.iter().map(|key| shown::hex(&texts.space().pack(key))).collect();
    let rows = found["documents"].as_array().unwrap().iter();
    rows.map(|row| {
        let key = row["record"]["key_hex"].as_str().unwrap();
        (known.iter().position(|one| one == key).unwrap(), row["frequency"].as_u64().unwrap())
    })
    .collect()
}

fn check<K: RecordKey + Clone + 'static>(
    keys: &[K],
    make: impl Fn(&keyloom::Subspace) -> TextIndex<K, String>,
) {
    let large = filled(keys, make);
    let all = large.view("text", of_term("all"));
    let tokens: usize = (0..TEXTS).map(|n| words(n).split_whitespace().count()).sum();
    let field = &all["fields"][0];
    assert_eq!((&field["name"], field["documents"].as_u64()), (&"(0,)".into(), Some(500)));
    // The analyzer may cut a word in several.
    assert!(field["tokens"].as_u64().unwrap().abs_diff(tokens as u64) < 10, "{field}");
    assert_eq!(counts(&all), [("all", 500)]);
    let shown = documents(&large, keys, &all);
    assert_eq!(shown.len(), 20);
    assert!(shown.iter().all(|(n, frequency)| *frequency == *n as u64 % 3 + 1), "{shown:?}");
    let seven = large.view("text", of_term("seven"));
    assert_eq!(counts(&seven), [("seven", 72), ("seventh", 1)]);
    assert!(documents(&large, keys, &seven).iter().all(|(n, _)| n.is_multiple_of(7)));
    assert_eq!(documents(&large, keys, &large.view("text", of_term("rare"))), [(400, 1)]);
    for (term, found) in
        [("sev", 2), ("<b>", 0), ("\0\u{1b}", 0), (&"x".repeat(3_000), 0), (" ", 0)]
    {
        let view = large.view("text", of_term(term));
        assert_eq!((counts(&view).len(), &view["documents"]), (found, &Value::Null), "{term}");
    }
    assert!(counts(&large.view("text", of_term(""))).len() >= 5);
    assert!(large.refusal("text", named("library/texts")).contains("is not a text index"));
}

#[test]
fn terms_and_documents_are_those_of_the_texts() {
    let numbers: Vec<u32> = (0..TEXTS as u32).collect();
    check(&numbers, TextIndex::with_keys_as_ids);
    check(&numbers.iter().map(|n| (n % 10, format!("<i>{n}"))).collect::<Vec<_>>(), TextIndex::new);
}

#[test]
fn an_index_without_texts_has_no_terms() {
    let large = filled::<u32>(&[], TextIndex::with_keys_as_ids);
    let found = large.view("text", of_term("all"));
    assert_eq!((counts(&found), &found["documents"]), (vec![], &Value::Null));
}
