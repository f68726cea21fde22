//! The bytes and the statistics of an index are a function of its records.

use std::collections::BTreeMap;

use keyloom::{Limits, Memory, Reader, Store, Subspace, Writer};
use keyloom_tables::{Maintained, Table};
use keyloom_testing::laws;
use keyloom_text::{Analyzer, Query, TextError, TextIndex};

use super::corpus::{FIELDS, Model, history, index, post, posts, tokens};

/// All entries. A counter of 0 is equivalent to a missing one.
fn dump(store: &impl Store) -> laws::Dump {
    let prefix = keyloom::pack("text");
    let all = laws::dump_all(store).into_iter();
    all.filter(|(key, value)| key.starts_with(&prefix) && value[..] != [0; 8]).collect()
}

pub fn rebuilt_indexes_have_the_same_bytes(store: &impl Store) {
    for seed in 0..6 {
        laws::clear(store);
        let mut random = fastrand::Rng::with_seed(seed);
        let index = index(false);
        let table = posts(&index);
        let docs = [40, 300, 500][seed as usize % 3];
        let model = history(&mut random, store, &table, docs);
        assert_eq!(index.check(&store.snapshot().unwrap(), &table).unwrap(), []);
        let maintained = dump(store);
        laws::clear(store);
        for (id, post) in &model {
            store.transact(|txn| table.put(txn, id, post)).unwrap();
        }
        assert!(dump(store) == maintained, "by single puts, seed {seed}");
        laws::clear(store);
        let plain = keyloom_tables::Table::<u32, _>::new(table.space());
        store.transact(|txn| plain.put_many(txn, model.clone())).unwrap();
        index.repair(store, &table).unwrap();
        assert!(dump(store) == maintained, "by a repair, seed {seed}");
    }
}

pub fn statistics_are_those_of_the_records(store: &impl Store) {
    for (seed, has_dense_ids) in (20..32).zip([true, false].into_iter().cycle()) {
        laws::clear(store);
        let mut random = fastrand::Rng::with_seed(seed);
        let index = index(has_dense_ids);
        let table = posts(&index);
        let model = history(&mut random, store, &table, 200);
        let snapshot = store.snapshot().unwrap();
        for (field, name) in (0..).zip(FIELDS) {
            statistics(&index, &snapshot, &model, field, name);
        }
    }
}

fn statistics(
    index: &super::corpus::Index,
    reader: &impl Reader,
    model: &Model,
    field: u32,
    name: &str,
) {
    let (mut documents, mut all, mut terms) = (0, 0, BTreeMap::<String, i64>::new());
    for post in model.values() {
        let mut tokens: Vec<String> =
            tokens(post, name).into_iter().map(|(term, _)| term).collect();
        documents += i64::from(!tokens.is_empty());
        all += tokens.len() as i64;
        tokens.sort();
        tokens.dedup();
        tokens.into_iter().for_each(|term| *terms.entry(term).or_default() += 1);
    }
    let counter = |key: &[u8]| reader.counter(key).unwrap();
    let space = index.space();
    assert_eq!(counter(&space.pack(&(4, field, 0))), documents);
    assert_eq!(counter(&space.pack(&(4, field, 1))), all);
    for n in 0..60 {
        let term = format!("w{n}");
        let expected = terms.get(&term).copied().unwrap_or(0);
        assert_eq!(counter(&space.pack(&(1, field, &*term))), expected, "{name} {term}");
    }
}

pub fn batches_leave_the_bytes_of_single_puts(store: &impl Store) {
    let mut random = fastrand::Rng::with_seed(7);
    let all: Model = (0..500).map(|id| (id, post(&mut random))).collect();
    let index = index(false);
    let table = posts(&index);
    store.transact(|txn| table.put_many(txn, all.clone())).unwrap();
    let at_once = dump(store);
    laws::clear(store);
    let shuffled: Vec<(u32, _)> = {
        let mut shuffled: Vec<_> = all.clone().into_iter().collect();
        random.shuffle(&mut shuffled);
        shuffled
    };
    for some in shuffled.chunks(40) {
        store.transact(|txn| table.put_many(txn, some.to_vec())).unwrap();
    }
    assert!(dump(store) == at_once);
    // Half of the documents are deleted, and blocks are merged.
    let (gone, kept) = shuffled.split_at(490);
    for some in gone.chunks(50) {
        let delete = |(id, _): &(u32, _)| Ok(*id);
        let ids: Vec<u32> = some.iter().map(delete).collect::<keyloom::Result<_>>().unwrap();
        store
            .transact(|txn| ids.iter().try_for_each(|id| table.delete(txn, id).map(drop)))
            .unwrap();
    }
    let few = dump(store);
    laws::clear(store);
    store.transact(|txn| table.put_many(txn, kept.to_vec())).unwrap();
    assert!(dump(store) == few);
}

pub fn damage_of_any_entry_is_found_and_repaired(store: &impl Store) {
    let mut random = fastrand::Rng::with_seed(3);
    let index = index(false);
    let table = posts(&index);
    let all: Model = (0..150).map(|id| (id, post(&mut random))).collect();
    store.transact(|txn| table.put_many(txn, all.clone())).unwrap();
    let whole = dump(store);
    let faults = || index.check(&store.snapshot().unwrap(), &table).unwrap();
    for (n, (key, value)) in whole.iter().step_by(whole.len() / 16).enumerate() {
        store
            .transact(|txn| match n % 3 {
                0 => txn.delete(key),
                1 => txn.put(key, &[&value[..], b"x"].concat()),
                _ => txn.put(&[&key[..], b"\x15\x07"].concat(), value),
            })
            .unwrap();
        assert_ne!(faults(), [], "{n} at {key:?}");
        index.repair(store, &table).unwrap();
        assert!(dump(store) == whole, "{n} at {key:?}");
    }
}

/// Texts whose terms are grams or parents: an update may only add terms at positions that have one.
pub fn updates_that_only_add_terms_count_a_record_once(store: &impl Store) {
    let analyzers = [
        Analyzer::simple().edge_ngrams(1..=4).unwrap(),
        Analyzer::simple().ngrams(2..=3).unwrap(),
        Analyzer::paths(),
        Analyzer::simple(),
    ];
    let texts = ["", "a", "ab", "abc", "abcd", "ba", "/a", "/a/b", "a b", "abc abc"];
    for (seed, analyzer) in (0..).zip(analyzers) {
        laws::clear(store);
        let mut random = fastrand::Rng::with_seed(seed);
        let index = TextIndex::with_keys_as_ids(&Subspace::new("text")).field(
            "text",
            analyzer,
            |_: &u32, text: &String, add| add(text),
        );
        let table = Table::<u32, String>::new(&Subspace::new("texts")).with(&index);
        let mut model = BTreeMap::new();
        for _ in 0..60 {
            let (id, text) = (random.u32(..6), texts[random.usize(..texts.len())].to_owned());
            store.transact(|txn| table.put(txn, &id, &text)).unwrap();
            model.insert(id, text);
            assert_eq!(index.check(&store.snapshot().unwrap(), &table).unwrap(), [], "{model:?}");
        }
        let with_text = index.search(Query::exists("text")).count(&store.snapshot().unwrap());
        let has_terms = |text: &&String| text.chars().any(char::is_alphanumeric);
        // A text of one letter has no grams of two, and a path has a term for each slash.
        if seed != 1 && seed != 2 {
            assert_eq!(with_text.unwrap(), model.values().filter(has_terms).count() as u64);
        }
        store.transact(|txn| table.delete_many(txn, model.keys())).unwrap();
        assert_eq!(dump(store).len(), 0, "what is left of no records");
    }
}

/// A list that differs in more keys than a transaction can write is repaired in several.
#[test]
fn lists_larger_than_a_transaction_are_repaired() {
    const SMALL: usize = 50;
    let limits = Limits::default().with_max_transaction(None, Some(SMALL));
    let store = Memory::builder().limits(limits).build();
    let index = TextIndex::with_keys_as_ids(&Subspace::new("text")).field(
        "text",
        Analyzer::simple(),
        |_: &u32, text: &String, add| add(text),
    );
    let plain = Table::<u32, String>::new(&Subspace::new("texts"));
    let table = plain.clone().with(&index);
    let ids: Vec<u32> = (0..9_000).collect();
    // Missing lists, lists without records, and lists of other records.
    for step in [1, 2] {
        for some in ids.chunks(SMALL) {
            store
                .transact(|txn| plain.put_many(txn, some.iter().map(|id| (*id, "a b".to_owned()))))
                .unwrap();
        }
        index.repair(&store, &table).unwrap();
        assert_eq!(index.check(&store.snapshot().unwrap(), &table).unwrap(), []);
        let gone: Vec<u32> = ids.iter().step_by(step).copied().collect();
        for some in gone.chunks(SMALL) {
            store.transact(|txn| plain.delete_many(txn, some)).unwrap();
        }
        assert!(!index.check(&store.snapshot().unwrap(), &table).unwrap().is_empty());
        index.repair(&store, &table).unwrap();
        assert_eq!(index.check(&store.snapshot().unwrap(), &table).unwrap(), []);
    }
    let left = index.search(Query::term("text", "a")).count(&store.snapshot().unwrap());
    assert_eq!(left.unwrap(), 4_500);
}

/// A term is refused at its first record, or accepted for any number of records.
#[test]
fn a_term_that_is_accepted_stays_accepted() {
    let index = TextIndex::with_keys_as_ids(&Subspace::new(&"s".repeat(270))).field(
        "text",
        Analyzer::keyword(),
        |_: &u32, text: &String, add| add(text),
    );
    let table = Table::<u32, String>::new(&Subspace::new("texts")).with(&index);
    let mut refused = 0;
    for bytes in 210..=250 {
        let (store, term) = (Memory::new(), "x".repeat(bytes));
        let put = |id: u32| store.transact(|txn| table.put(txn, &id, &term));
        match put(4_000_000_000) {
            Err(error) => {
                let is_named = matches!(error.downcast_ref(), Some(TextError::TermTooLong { .. }));
                assert!(is_named, "{error}");
                refused += 1;
            }
            Ok(()) => {
                let ids = (0..2_200).map(|n| (3_999_999_999 - n * 5, term.clone()));
                store.transact(|txn| table.put_many(txn, ids.clone())).unwrap();
            }
        }
    }
    assert!((3..39).contains(&refused), "{refused}");
}
