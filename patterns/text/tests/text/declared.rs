//! Declarations that a schema refuses, and the effect of declarations on queries.

use keyloom::{Memory, Reader, Store, Subspace};
use keyloom_bitmaps::one;
use keyloom_tables::{Schema, SchemaError, Table};
use keyloom_text::analysis::Synonyms;
use keyloom_text::{Analyzer, MoreLikeThis, Near, Query, Spans, TextIndex};

type Texts = TextIndex<u32, String>;

fn bodies(analyzer: Analyzer) -> Texts {
    let index = TextIndex::with_keys_as_ids(&Subspace::new("text"));
    index.field("body", analyzer, |_, text: &String, add| add(text))
}

/// A store with these texts under 1, 2, …
fn stored(index: &Texts, texts: &[&str]) -> (Memory, Table<u32, String>) {
    let (store, table) = (Memory::new(), Table::new(&Subspace::new("texts")).with(index));
    let texts = texts.iter().map(ToString::to_string);
    store.transact(|txn| table.put_many(txn, (1..).zip(texts.clone()))).unwrap();
    (store, table)
}

fn found(index: &Texts, store: &Memory, query: impl Into<Query>) -> Result<Vec<u64>, String> {
    let search = index.search(query).limit(100);
    let mut ids: Vec<u64> = search
        .ids(&store.snapshot().unwrap())
        .map_err(|error| error.to_string())?
        .into_iter()
        .collect();
    ids.sort_unstable();
    Ok(ids)
}

#[test]
fn another_kind_of_filter_is_refused() {
    let store = Memory::new();
    let declare = |has_integers: bool| {
        let schema = Schema::open(&store, "shop").unwrap();
        let table = schema.table::<u32, i64>("years").unwrap();
        let attached = schema.derive(&table, "text", 1, |space| {
            let index = TextIndex::with_keys_as_ids(space);
            match has_integers {
                true => Ok(index.integers("year", |_, year: &i64| Some(*year))),
                false => Ok(index.values("year", |_, year: &i64| one(year))),
            }
        });
        attached.map(drop)
    };
    declare(false).unwrap();
    declare(false).unwrap();
    let error = declare(true).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(SchemaError::Contradiction { .. })), "{error}");
}

#[test]
fn near_queries_with_too_many_spans_are_refused() {
    let index = bodies(Analyzer::simple());
    let words: Vec<String> = (0..33).map(|n| format!("w{n}")).collect();
    let (store, _) = stored(&index, &[&words.join(" ")]);
    let near = |count: usize| {
        Near::unordered(words.iter().take(count).map(|word| Spans::from(&**word))).slop(1)
    };
    let outer = |inner: Near| {
        Query::near("body", Near::ordered([Spans::from(inner), "w32".into()]).slop(40))
    };
    assert_eq!(found(&index, &store, Query::near("body", near(32))), Ok(vec![1]));
    assert_eq!(found(&index, &store, outer(near(8))), Ok(vec![1]));
    for (query, limit) in [
        (Query::near("body", near(33)), "32"),
        (outer(near(9)), "8"),
        (outer(Near { is_ordered: true, ..near(33) }), "32"),
        (Query::phrase("body", words.join(" ")).slop(1), "32"),
    ] {
        let error = found(&index, &store, query).unwrap_err();
        assert!(error.contains(limit), "{error}");
    }
    // A phrase without slop has no length limit.
    assert_eq!(found(&index, &store, Query::phrase("body", words.join(" "))), Ok(vec![1]));
}

#[test]
fn query_texts_have_the_search_analyzer() {
    let prefixes = Analyzer::names().edge_ngrams(1..=8).unwrap();
    let plain = bodies(prefixes);
    let index = plain.clone().search_analyzer("body", Analyzer::names());
    let (store, table) = stored(&index, &["a rabbit", "a red rose", "the Rabbits", "rabble"]);
    let query = |text: &str| Query::term("body", text);
    assert_eq!(found(&plain, &store, query("rab")), Ok(vec![1, 2, 3, 4]));
    assert_eq!(found(&index, &store, query("Rab")), Ok(vec![1, 3, 4]));
    assert_eq!(found(&index, &store, Query::phrase("body", "a rab")), Ok(vec![1]));
    // The stored bytes do not depend on this option.
    assert_eq!(
        keyloom_tables::Maintained::options(&index),
        keyloom_tables::Maintained::options(&plain)
    );

    let highlighter = index.highlighter("body", &query("rab")).unwrap();
    assert_eq!(highlighter.marks("a rabid red rabbit"), [2..7, 12..18]);
    let highlighter = plain.highlighter("body", &query("rab")).unwrap();
    assert_eq!(highlighter.marks("a rabid red rabbit"), [2..7, 8..11, 12..18]);

    let snapshot = store.snapshot().unwrap();
    let options = MoreLikeThis { min_frequency: 1, min_documents: 1, ..MoreLikeThis::default() };
    let similar = index.more_like_this(&snapshot, &table, &2, &options).unwrap();
    let words = ["rose", "red", "a"].map(|word| Query::term("body", word));
    let similar = similar.unwrap().to_string();
    for word in words {
        assert_eq!(similar.matches(&word.to_string()).count(), 1, "{similar}");
    }
}

#[test]
fn similar_records_have_each_word_once() {
    let grams = Analyzer::simple().ngrams(2..=3).unwrap();
    let index = bodies(grams).field("again", Analyzer::simple(), |_, text: &String, add| add(text));
    let (store, table) = stored(&index, &["rabbit hole", "rabbit hole"]);
    let fields = ["body", "again", "body"].map(String::from).to_vec();
    let options = MoreLikeThis { fields, max_terms: 4, min_frequency: 1, min_documents: 1 };
    let query = index.more_like_this(&store.snapshot().unwrap(), &table, &1, &options).unwrap();
    let text = query.unwrap().to_string();
    let mut clauses: Vec<&str> = text.split(' ').collect();
    clauses.sort_unstable();
    clauses.iter_mut().for_each(|clause| *clause = clause.trim_start_matches('|'));
    clauses.retain(|clause| *clause != "OR");
    clauses.sort_unstable();
    assert_eq!(clauses, ["again:hole", "again:rabbit", "body:hole", "body:rabbit"], "{text}");
}

#[test]
fn tokens_of_one_position_count_once_in_the_length() {
    let synonyms = Synonyms::new().equivalent(["sofa", "couch", "settee"]);
    let expanded = Analyzer::simple().synonyms(&synonyms).unwrap();
    let grams = Analyzer::simple().ngrams(1..=3).unwrap();
    // Two texts, one of them with a repeated word, and a gap of positions between them.
    let two = |text: &String| [text.clone(), "a sofa a bed".to_owned()];
    for (analyzer, wanted) in [(expanded, 7), (grams, 7), (Analyzer::simple().stop_words(["a"]), 4)]
    {
        let index = TextIndex::<u32, String>::with_keys_as_ids(&Subspace::new("text")).field(
            "body",
            analyzer,
            move |_, text, add| two(text).iter().for_each(|text| add(text)),
        );
        let (store, table) = stored(&index, &["red sofa a"]);
        let snapshot = store.snapshot().unwrap();
        let length = snapshot.counter(&index.space().pack(&(4, 0, 1))).unwrap();
        assert_eq!(length, wanted);
        assert_eq!(keyloom_tables::Maintained::check(&index, &snapshot, &table).unwrap(), []);
    }
}
