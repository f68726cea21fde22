//! Elements in flat documents: numbered fields, proximity, and their limits.

use std::collections::BTreeMap;

use keyloom::{Error, Metered, Store, Subspace};
use keyloom_documents::{DocumentError, NumberedFields, ProximityField};
use keyloom_tables::Table;
use keyloom_testing::ids::number;
use keyloom_testing::laws::{clear, counts, long_property, refused};
use keyloom_text::{Analyzer, Near, Query, TextIndex};
use proptest::prelude::*;

keyloom_testing::on_every_store! {
    numbered_fields_find_elements,
    proximity_finds_elements_of_any_number,
    more_elements_than_numbers_are_refused,
    long_elements_are_refused,
    numbered_queries_cost_each_number,
}

keyloom_testing::on_every_server! {
    numbered_fields_find_elements,
    proximity_finds_elements_of_any_number,
}

/// The skills of a person, each with its level.
type Skills = Vec<(String, String)>;
type Resumes = Table<u32, Skills>;

fn skills(all: &[[&str; 2]]) -> Skills {
    all.iter().map(|[skill, level]| (skill.to_string(), level.to_string())).collect()
}

fn pass(skills: &Skills, add: &mut dyn FnMut(&[&str])) {
    skills.iter().for_each(|(skill, level)| add(&[skill, level]));
}

fn numbered(most: usize) -> NumberedFields<u32, Skills> {
    NumberedFields::new(["skill", "level"], most, |_: &u32, all: &Skills, add| pass(all, add))
        .unwrap()
}

fn proximity() -> ProximityField<u32, Skills> {
    ProximityField::new("skills", Analyzer::simple(), |_: &u32, all: &Skills, add| pass(all, add))
}

fn space() -> Subspace {
    Subspace::new("text")
}

fn with_numbers(most: usize) -> (TextIndex<u32, Skills>, Resumes) {
    let index = numbered(most).add_to(TextIndex::new(&space()), |_| Analyzer::simple());
    let resumes = Table::new(&Subspace::new("resumes")).with(&index);
    (index, resumes)
}

fn near() -> (TextIndex<u32, Skills>, Resumes) {
    let index = proximity().add_to(TextIndex::new(&space()));
    let resumes = Table::new(&Subspace::new("resumes")).with(&index);
    (index, resumes)
}

fn numbered_query(most: usize, skill: &str, level: &str) -> Query {
    numbered(most).query(|name| {
        Query::all_of([Query::term(name("skill"), skill), Query::term(name("level"), level)])
    })
}

fn found(index: &TextIndex<u32, Skills>, store: &impl Store, query: Query) -> Vec<u32> {
    let page = index.search(query).limit(100).hits(&store.snapshot().unwrap()).unwrap();
    let mut keys: Vec<u32> = page.items.iter().map(|hit| hit.key).collect();
    keys.sort_unstable();
    keys
}

/// The catalogue's example: a person who is excellent in maths and poor in poetry.
fn resume() -> Skills {
    skills(&[["maths", "excellent"], ["poetry", "poor"]])
}

#[test]
fn flat_fields_match_across_skills() {
    let store = keyloom_testing::memory();
    let index = TextIndex::new(&space())
        .field("skill", Analyzer::simple(), |_: &u32, all: &Skills, add| {
            all.iter().for_each(|(skill, _)| add(skill));
        })
        .field("level", Analyzer::simple(), |_, all, add| {
            all.iter().for_each(|(_, level)| add(level));
        });
    let resumes = Resumes::new(&Subspace::new("resumes")).with(&index);
    store.transact(|txn| resumes.put(txn, &1, &resume())).unwrap();
    let query = Query::all_of([Query::term("skill", "poetry"), Query::term("level", "excellent")]);
    assert_eq!(found(&index, &store, query), [1], "wrong, but this is what flat fields do");
}

#[test]
fn proximity_without_gaps_matches_across_skills() {
    let store = keyloom_testing::memory();
    // All elements as one text.
    let index =
        TextIndex::new(&space()).field("skills", Analyzer::simple(), |_, all: &Skills, add| {
            let words: Vec<&str> = all.iter().flat_map(|(s, l)| [s.as_str(), l.as_str()]).collect();
            add(&words.join(" "));
        });
    let resumes = Resumes::new(&Subspace::new("resumes")).with(&index);
    store.transact(|txn| resumes.put(txn, &1, &resume())).unwrap();
    let neighbours = Query::near("skills", Near::unordered(["poetry", "excellent"]));
    assert_eq!(found(&index, &store, neighbours.clone()), [1], "wrong: of two skills");

    // With a guard gap between the elements, and with both orders of the words.
    let (index, resumes) = near();
    let store = keyloom_testing::memory();
    store.transact(|txn| proximity().put(txn, &resumes, &1, &resume())).unwrap();
    assert_eq!(found(&index, &store, neighbours), [0; 0]);
    let far = Query::near("skills", Near::unordered(["poetry", "excellent"]).slop(99));
    assert_eq!(found(&index, &store, far), [0; 0]);
    assert_eq!(found(&index, &store, proximity().query(["poetry", "poor"])), [1]);
}

#[test]
fn proximity_confuses_values_of_many_words() {
    let (index, resumes) = near();
    let store = keyloom_testing::memory();
    let put = skills(&[["poor man's poetry", "excellent"]]);
    store.transact(|txn| proximity().put(txn, &resumes, &1, &put)).unwrap();
    assert_eq!(found(&index, &store, proximity().query(["poor", "poetry"])), [1]);
    // Values in the opposite order do not match.
    assert_eq!(found(&index, &store, proximity().query(["excellent", "poor"])), [0; 0]);
}

fn resumes_of_words() -> impl Strategy<Value = BTreeMap<u32, Skills>> {
    let skill = prop::sample::select(vec!["maths", "poetry", "chess"]);
    let level = prop::sample::select(vec!["poor", "good", "excellent"]);
    let all =
        prop::collection::vec((skill.prop_map(String::from), level.prop_map(String::from)), 0..5);
    let key = (0..9_u64).prop_map(|n| number(n) as u32);
    prop::collection::btree_map(key, all, 0..9)
}

/// The people with this skill at this level.
fn expected(model: &BTreeMap<u32, Skills>, skill: &str, level: &str) -> Vec<u32> {
    let is_one = |(s, l): &(String, String)| s == skill && l == level;
    let with = |(key, all): (&u32, &Skills)| all.iter().any(is_one).then_some(*key);
    model.iter().filter_map(with).collect()
}

pub fn numbered_fields_find_elements(store: &impl Store) {
    long_property(resumes_of_words(), |model| {
        clear(store);
        let ((index, resumes), fields) = (with_numbers(4), numbered(4));
        store
            .transact(|txn| {
                model.iter().try_for_each(|(key, all)| fields.put(txn, &resumes, key, all))
            })
            .unwrap();
        for (skill, level) in [("maths", "excellent"), ("poetry", "poor"), ("chess", "chess")] {
            let wanted = expected(&model, skill, level);
            assert_eq!(found(&index, store, numbered_query(4, skill, level)), wanted);
        }
    });
}

pub fn proximity_finds_elements_of_any_number(store: &impl Store) {
    long_property(resumes_of_words(), |model| {
        clear(store);
        let ((index, resumes), field) = (near(), proximity());
        store
            .transact(|txn| {
                model.iter().try_for_each(|(key, all)| field.put(txn, &resumes, key, all))
            })
            .unwrap();
        for (skill, level) in [("maths", "excellent"), ("poetry", "poor"), ("chess", "chess")] {
            let wanted = expected(&model, skill, level);
            assert_eq!(found(&index, store, field.query([skill, level])), wanted);
        }
    });
}

fn document_error(error: &Error) -> &DocumentError {
    error.downcast_ref().unwrap_or_else(|| panic!("{error}"))
}

pub fn more_elements_than_numbers_are_refused(store: &impl Store) {
    clear(store);
    let ((index, resumes), fields) = (with_numbers(2), numbered(2));
    store.transact(|txn| fields.put(txn, &resumes, &1, &resume())).unwrap();
    let mut three = resume();
    three.push(("chess".to_owned(), "good".to_owned()));
    let error = refused(store, |txn| fields.put(txn, &resumes, &1, &three));
    let expected =
        DocumentError::TooManyElements { key: r#"("resumes", 1)"#.to_owned(), count: 3, most: 2 };
    assert_eq!(document_error(&error), &expected);
    assert_eq!(found(&index, store, numbered_query(2, "poetry", "poor")), [1]);

    let wrong = NumberedFields::new(["skill", "level"], 2, |_: &u32, all: &Skills, add| {
        all.iter().for_each(|(skill, _)| add(&[skill]));
    });
    let error = refused(store, |txn| wrong.unwrap().put(txn, &resumes, &2, &resume()));
    assert!(matches!(document_error(&error), DocumentError::OtherValues { values: 1, .. }));
}

#[test]
fn wrong_numbered_fields_are_refused() {
    let new = |names: &[&str], most| {
        NumberedFields::new(names.to_vec(), most, |_: &u32, all: &Skills, add| pass(all, add))
    };
    for (names, most) in
        [(&[][..], 3), (&["a", ""], 3), (&["a", "b", "a"], 3), (&["a"], 0), (&["a", "b"], 513)]
    {
        let error = new(names, most).map(drop).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    }
    assert!(new(&["a", "b"], 512).is_ok());
    // A name that is none of the fields.
    let (index, _) = with_numbers(2);
    let query = numbered(2).query(|name| Query::term(name("mood"), "good"));
    let error =
        index.search(query).hits(&keyloom_testing::memory().snapshot().unwrap()).unwrap_err();
    assert!(error.to_string().contains("no field \"mood_1\""), "{error}");
}

pub fn long_elements_are_refused(store: &impl Store) {
    clear(store);
    let ((index, resumes), field) = (near(), proximity());
    let words = |many: usize| vec!["word"; many].join(" ");
    let element = |many: usize| vec![(format!("first {}", words(many - 2)), "last".to_owned())];
    // The longest element, between two others: a proximity query finds both of its ends.
    let mut longest = skills(&[["last", "first"]]);
    longest.extend(element(100));
    longest.extend(skills(&[["last", "first"]]));
    store.transact(|txn| field.put(txn, &resumes, &1, &longest)).unwrap();
    assert_eq!(found(&index, store, field.query(["first", "last"])), [1]);
    // Without the long element, the same words are in two elements, and do not match.
    let others = skills(&[["last", "first"], ["last", "first"]]);
    store.transact(|txn| field.put(txn, &resumes, &1, &others)).unwrap();
    assert_eq!(found(&index, store, field.query(["first", "last"])), [0; 0]);

    let error = refused(store, |txn| field.put(txn, &resumes, &2, &element(101)));
    let expected = DocumentError::LongElement {
        key: r#"("resumes", 2)"#.to_owned(),
        positions: 101,
        limit: 100,
    };
    assert_eq!(document_error(&error), &expected);
}

/// The numbers of lists and gets of a query for one element, with `most` numbered fields.
fn cost(store: &(impl Store + Clone), most: usize) -> (u64, u64) {
    clear(store);
    let ((index, resumes), fields) = (with_numbers(most), numbered(most));
    store.transact(|txn| fields.put(txn, &resumes, &1, &resume())).unwrap();
    let query = numbered_query(most, "maths", "excellent");
    let search = index.search(query);
    let lists = search.explain(&store.snapshot().unwrap()).unwrap().lists;
    let metered = Metered::new(store.clone());
    let snapshot = metered.snapshot().unwrap();
    let (hits, cost) = metered.measure(|_| search.hits(&snapshot));
    assert_eq!(hits.unwrap().items.len(), 1);
    (lists, counts(cost)[0])
}

pub fn numbered_queries_cost_each_number(store: &(impl Store + Clone)) {
    let costs = [2, 4, 8, 16].map(|most| cost(store, most));
    // Two lists for each number. The statistics of two fields and two words cost 3 gets per field.
    assert_eq!(costs.map(|(lists, _)| lists), [4, 8, 16, 32]);
    let per_number = |n: usize| (costs[n].1 - costs[n - 1].1) / (1 << n);
    assert!(per_number(1) >= 2, "{costs:?}");
    assert_eq!([per_number(2), per_number(3)], [per_number(1); 2], "{costs:?}");

    // A proximity query reads two lists, whatever the number of elements is.
    clear(store);
    let ((index, resumes), field) = (near(), proximity());
    for many in [2, 16] {
        let all = (1..many).fold(resume(), |mut all, n| {
            all.push((format!("skill{n}"), "good".to_owned()));
            all
        });
        store.transact(|txn| field.put(txn, &resumes, &1, &all)).unwrap();
        let search = index.search(field.query(["maths", "excellent"]));
        assert_eq!(search.explain(&store.snapshot().unwrap()).unwrap().lists, 2);
    }
}
