//! What a schema refuses, and what a declaration means for queries.

use keyloom::{Memory, Store, Subspace};
use keyloom_bitmaps::one;
use keyloom_tables::{Schema, SchemaError, Table};
use keyloom_text::{Analyzer, Near, Query, Spans, TextIndex};

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
    // A phrase without slop has no limit.
    assert_eq!(found(&index, &store, Query::phrase("body", words.join(" "))), Ok(vec![1]));
}
