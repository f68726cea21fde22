//! A group returns the same results as a separate index: the oracle is an ungrouped index over the
//! records of one group.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::{Error, Memory, Metered, Reader, Store, Subspace, Writer, pack};
use keyloom_bitmaps::{one, single};
use keyloom_tables::conformance::{Fidelity, Subject, check_maintained};
use keyloom_tables::{Continuation, Maintained, Schema, SchemaError, Table};
use keyloom_testing::ids::BYTES;
use keyloom_testing::laws::{self, very_long_property};
use keyloom_text::suggest::Similarity;
use keyloom_text::{Analyzer, Detail, Group, Hit, MoreLikeThis, Near, Query, TextError, TextIndex};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::corpus::key;

/// A tenant and a category.
type Parts = (Vec<u8>, u64);
type Grouped = TextIndex<u32, Text, Parts>;
type Alone = TextIndex<u32, Text>;
type Texts = Table<u32, Text>;
type Model = BTreeMap<u32, Text>;
/// Records to put, and keys to delete, in one transaction.
type Batch = BTreeMap<u32, Option<Text>>;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Text {
    group: Parts,
    title: String,
    body: String,
    year: i64,
}

const CATEGORIES: [u64; 4] = [0, 1, 255, 256];
const WORDS: [&str; 9] = ["a", "ab", "abc", "b", "ba", "rab", "rabbit", "rabbits", "rabble"];

fn all_groups() -> impl Iterator<Item = Parts> {
    let of = |tenant: &[u8]| CATEGORIES.map(|category| (tenant.to_vec(), category));
    BYTES.into_iter().flat_map(of)
}

fn space() -> Subspace {
    Subspace::new("text")
}

fn with_fields<G: 'static>(index: TextIndex<u32, Text, G>) -> TextIndex<u32, Text, G> {
    index
        .field_with("title", Detail::Frequencies, Analyzer::simple(), |_, text: &Text, add| {
            add(&text.title)
        })
        .field("body", Analyzer::simple(), |_, text: &Text, add| add(&text.body))
        .values("title", |_, text: &Text| one(&text.title))
        .integers("year", |_, text: &Text| Some(text.year))
}

fn group_of(text: &Text) -> Group<Parts> {
    Group::of((&text.group.0, text.group.1))
}

fn grouped(space: &Subspace) -> Grouped {
    with_fields(TextIndex::grouped_with_keys_as_ids(space, |_, text| group_of(text)))
}

fn alone() -> Alone {
    with_fields(TextIndex::with_keys_as_ids(&space()))
}

fn table() -> Texts {
    Table::new(&Subspace::new("texts"))
}

fn words(most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&WORDS[..]), 0..=most).prop_map(|all| all.join(" "))
}

/// Most records are in one of two groups, so that these two have several records.
fn text() -> impl Strategy<Value = Text> {
    let any = prop::sample::select(all_groups().collect::<Vec<_>>());
    let common = prop::sample::select(vec![(b"a".to_vec(), 0), (b"a\0".to_vec(), 0)]);
    let parts = (prop_oneof![common, any], words(2), words(6), 2_000_i64..2_004);
    parts.prop_map(|(group, title, body, year)| Text { group, title, body, year })
}

fn history() -> impl Strategy<Value = Vec<Batch>> {
    let change = prop_oneof![4 => text().prop_map(Some), 1 => Just(None)];
    let batch = prop::collection::btree_map((0..40_u32).prop_map(key), change, 1..16);
    prop::collection::vec(batch, 1..8)
}

fn apply(store: &impl Store, table: &Texts, history: &[Batch]) -> Model {
    let mut model = Model::new();
    for batch in history {
        let put = || batch.iter().filter_map(|(id, text)| Some((*id, text.clone()?)));
        let deleted = || batch.iter().filter(|(_, text)| text.is_none()).map(|(id, _)| id);
        store
            .transact(|txn| {
                table.put_many(txn, put())?;
                deleted().try_for_each(|id| table.delete(txn, id).map(drop))
            })
            .unwrap();
        deleted().for_each(|id| drop(model.remove(id)));
        model.extend(put());
    }
    model
}

fn of_group(model: &Model, group: &Parts) -> Model {
    let own = model.iter().filter(|(_, text)| text.group == *group);
    own.map(|(id, text)| (*id, text.clone())).collect()
}

/// An index of the records of one group only.
fn stored_alone(model: &Model) -> (Memory, Alone, Texts) {
    let (store, index) = (Memory::new(), alone());
    let table = table().with(&index);
    store.transact(|txn| table.put_many(txn, model.clone())).unwrap();
    (store, index, table)
}

fn queries() -> Vec<Query> {
    let term = |text: &str| Query::term("body", text);
    vec![
        Query::All,
        term("rabbit"),
        Query::any_of([term("a"), Query::term("title", "rabbit")]),
        Query::all_of([term("ab"), term("b")]),
        Query::none_of([term("ab")]),
        Query::all_of([term("a"), Query::none_of([Query::term("title", "b")])]),
        Query::prefix("body", "rab"),
        Query::wildcard("title", "*b*"),
        Query::regex("body", "a(b|bc)?"),
        Query::fuzzy("body", "rabit", 2),
        Query::range("body", "abc".to_owned().."rab".to_owned()),
        Query::phrase("body", "a rabbit"),
        Query::near("body", Near::unordered(["ab", "rabbits"]).slop(2)),
        Query::exists("title"),
        Query::combined([("title", 2.0), ("body", 1.0)], "a rabbit"),
    ]
}

/// All pages of a search; continuations are converted to bytes and back.
fn pages(index: &Alone, reader: &impl Reader, query: &Query) -> Vec<Hit<u32>> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = index.search(query.clone()).limit(2).after(after).hits(reader).unwrap();
        all.extend(page.items);
        let Some(next) = page.next else { return all };
        after = Some(Continuation::from_bytes(next.as_bytes()));
    }
}

fn sorted(hits: Vec<Hit<u32>>) -> Vec<(u32, u64)> {
    let mut hits: Vec<_> = hits.iter().map(|hit| (hit.key, hit.score.to_bits())).collect();
    hits.sort_unstable();
    hits
}

/// The results of all reads of an index. `key` is the key of a record.
fn answers(index: &Alone, reader: &impl Reader, table: &Texts, key: u32) -> Vec<String> {
    let mut all = Vec::new();
    for query in queries() {
        let search = index.search(query.clone()).limit(100);
        let hits = search.hits(reader).unwrap().items;
        assert_eq!(pages(index, reader, &query), hits, "{query}");
        let counts = (search.count(reader).unwrap(), search.ids(reader).unwrap());
        let explained = search.explain_score(reader, &key).unwrap().map(|all| all.to_string());
        let recent = index.records().integers_of("year").unwrap().ge(2_002);
        let filtered = search.clone().filter(recent).hits(reader).unwrap();
        let facets = search.facets::<String>(reader, "title", 3).unwrap();
        let sorted = search.clone().sort_by("year", keyloom::Order::Descending).hits(reader);
        all.push(format!("{query}: {hits:?} {counts:?} {explained:?} {filtered:?} {facets:?}"));
        all.push(format!("{query}: {:?}", sorted.unwrap()));
    }
    let similarity = Similarity::default();
    all.push(format!("{:?}", index.complete(reader, "body", "ra", 3).unwrap()));
    all.push(format!("{:?}", index.did_you_mean(reader, "body", "rabit", &similarity).unwrap()));
    all.push(format!("{:?}", index.correct(reader, "body", "abb rabit b", &similarity).unwrap()));
    let options = MoreLikeThis { min_frequency: 1, min_documents: 1, ..MoreLikeThis::default() };
    all.push(format!("{:?}", index.more_like_this(reader, table, &key, &options).unwrap()));
    all
}

/// The entries of the lists and statistics, without the prefix. A counter of 0 is equivalent to a
/// missing one.
fn entries(store: &impl Store, kind: u8, group: &[u8]) -> laws::Dump {
    let prefix = [&space().pack(&kind)[..], group].concat();
    let all = laws::dump_all(store).into_iter();
    all.filter(|(_, value)| value[..] != [0; 8])
        .filter_map(|(key, value)| Some((key.strip_prefix(&prefix[..])?.to_vec(), value)))
        .collect()
}

pub fn groups_answer_as_indexes_of_their_own(store: &impl Store) {
    very_long_property(history(), |history| {
        laws::clear(store);
        let index = grouped(&space());
        let dense =
            with_fields(TextIndex::grouped(&Subspace::new("dense"), |_, text| group_of(text)));
        let texts = table().with(&index).with(&dense);
        let model = apply(store, &texts, &history);
        let snapshot = store.snapshot().unwrap();
        let empty = [(b"a\xFF\xFF".to_vec(), 256)];
        let groups: BTreeSet<Parts> = model.values().map(|text| text.group.clone()).collect();
        let mut singles = 0;
        for parts in groups.into_iter().chain(empty) {
            let own = of_group(&model, &parts);
            singles += u32::from(own.len() == 1);
            // Most groups have one record; a few of them suffice.
            if own.len() == 1 && singles > 3 {
                continue;
            }
            let (other, alone, table) = stored_alone(&own);
            let bytes = pack(&(&parts.0, parts.1));
            for kind in 1..=5 {
                assert_eq!(entries(store, kind, &bytes), entries(&other, kind, &[]), "{parts:?}");
            }
            let key = own.keys().next().copied().unwrap_or(99);
            let of_group = index.group((&parts.0, parts.1));
            let wanted = answers(&alone, &other.snapshot().unwrap(), &table, key);
            assert_eq!(answers(&of_group, &snapshot, &texts, key), wanted, "{parts:?}");
            // With assigned ids, hits with equal scores have another order.
            let dense = dense.group((&parts.0, parts.1));
            for query in queries() {
                let found = pages(&dense, &snapshot, &query);
                let wanted = pages(&alone, &other.snapshot().unwrap(), &query);
                assert_eq!(sorted(found), sorted(wanted), "{parts:?} {query}");
            }
        }
    });
}

fn dump(store: &impl Store) -> laws::Dump {
    let prefix = pack("text");
    let all = laws::dump_all(store).into_iter();
    all.filter(|(key, value)| key.starts_with(&prefix) && value[..] != [0; 8]).collect()
}

fn rebuild(store: &impl Store, index: &Grouped, table: &Texts, model: &Model) -> laws::Dump {
    laws::clear(store);
    store.transact(|txn| self::table().put_many(txn, model.clone())).unwrap();
    index.repair(store, table).unwrap();
    dump(store)
}

pub fn rebuilt_groups_have_the_same_bytes(store: &impl Store) {
    very_long_property((history(), text()), |(history, moved)| {
        laws::clear(store);
        let index = grouped(&space());
        let texts = table().with(&index);
        let mut model = apply(store, &texts, &history);
        assert_eq!(index.check(&store.snapshot().unwrap(), &texts).unwrap(), []);
        let maintained = dump(store);
        // The group of a record changes without an update of the index.
        let first = model.iter_mut().find(|(_, text)| {
            text.group != moved.group && !(text.body.is_empty() && text.title.is_empty())
        });
        if let Some((id, text)) = first {
            let unmoved = std::mem::replace(&mut text.group, moved.group);
            store.transact(|txn| table().put(txn, id, text)).unwrap();
            assert_ne!(index.check(&store.snapshot().unwrap(), &texts).unwrap(), []);
            index.repair(store, &texts).unwrap();
            assert_eq!(index.check(&store.snapshot().unwrap(), &texts).unwrap(), []);
            let repaired = dump(store);
            let id = *id;
            assert!(repaired == rebuild(store, &index, &texts, &model));
            // A put moves the record back.
            model.get_mut(&id).unwrap().group = unmoved;
            store.transact(|txn| texts.put(txn, &id, &model[&id])).unwrap();
        }
        assert!(dump(store) == maintained);
        assert!(rebuild(store, &index, &texts, &model) == maintained);
    });
}

/// `count` records in groups of 50, and 3 records in a separate group.
fn beside(count: u32) -> Model {
    let text = |tenant: u32, n: u32| {
        let (group, title) = ((tenant.to_string().into_bytes(), 0), format!("t{}", n % 9));
        Text { group, title, body: format!("a rabbit and w{}", n % 20), year: 2_000 }
    };
    let others = (0..count).map(|n| (1_000 + n, text(1 + n / 50, n)));
    others.chain((0..3).map(|n| (n * 20_000, text(0, n)))).collect()
}

fn stored<G: keyloom_tables::parts::KeyShape + 'static>(
    index: &TextIndex<u32, Text, G>,
    model: &Model,
) -> Metered<Memory> {
    let (store, table) = (Metered::new(Memory::new()), table().with(index));
    let all: Vec<_> = model.iter().map(|(id, text)| (*id, text.clone())).collect();
    for some in all.chunks(10_000) {
        store.transact(|txn| table.put_many(txn, some.to_vec())).unwrap();
    }
    store
}

pub fn damage_of_any_entry_of_a_group_is_found_and_repaired(store: &impl Store) {
    laws::clear(store);
    let index = grouped(&space());
    let texts = table().with(&index);
    store.transact(|txn| texts.put_many(txn, beside(200))).unwrap();
    let whole = dump(store);
    let faults = || index.check(&store.snapshot().unwrap(), &texts).unwrap();
    for (n, (key, value)) in whole.iter().step_by(whole.len() / 24).enumerate() {
        // An entry in the lists of a group that does not exist.
        let other = [&space().pack(&(2, "none"))[..], &key[space().pack(&1).len()..]].concat();
        store
            .transact(|txn| match n % 4 {
                0 => txn.delete(key),
                1 => txn.put(key, &[&value[..], b"x"].concat()),
                2 => txn.put(&[&key[..], b"\x15\x07"].concat(), value),
                _ => txn.put(&other, value),
            })
            .unwrap();
        assert_ne!(faults(), [], "{n} at {key:?}");
        index.repair(store, &texts).unwrap();
        assert!(dump(store) == whole, "{n} at {key:?}");
    }
}

/// The searches, completions and corrections within a group: each with its number of results, the
/// keys that it reads, and its gets and ranges.
fn costs<S: Store>(index: &Alone, store: &Metered<S>) -> Vec<(String, u64, u64)> {
    let snapshot = store.snapshot().unwrap();
    let all = queries().into_iter().map(|query| {
        let search = index.search(query.clone());
        let (found, cost) = store.measure(|_| search.hits(&snapshot).unwrap().items.len());
        (format!("{query}: {found}"), cost.keys_read, cost.gets + cost.ranges)
    });
    let mut all: Vec<_> = all.collect();
    let similarity = Similarity::default();
    let (_, cost) = store.measure(|_| index.complete(&snapshot, "body", "", 9).unwrap());
    all.push(("complete".to_owned(), cost.keys_read, cost.gets + cost.ranges));
    let correct = || index.correct(&snapshot, "body", "rabit und", &similarity).unwrap();
    let (_, cost) = store.measure(|_| correct());
    all.push(("correct".to_owned(), cost.keys_read, cost.gets + cost.ranges));
    all
}

#[test]
fn small_groups_cost_what_they_cost_alone() {
    let (model, few) = (beside(15_000), beside(0));
    let index = grouped(&space());
    let of_group = index.group((b"0", 0));
    let among = costs(&of_group, &stored(&index, &model));
    assert_eq!(among, costs(&of_group, &stored(&index, &few)));
    let total: u64 = among.iter().map(|(_, keys, _)| keys).sum();
    assert!(total < 400, "{among:?}");
    // One index with a filter reads many more keys, and its scores include all tenants.
    let index = with_fields(TextIndex::with_keys_as_ids(&space()))
        .values("tenant", |_, text: &Text| one(&text.group.0));
    let (store, few) = (stored(&index, &model), stored(&index, &few));
    let [of_all, of_few] = [&store, &few].map(|store| {
        let tenant = index.records().term("tenant", &b"0"[..]).unwrap();
        let search = index.search(Query::prefix("body", "w")).filter(tenant);
        let snapshot = store.snapshot().unwrap();
        let best = index
            .search(Query::term("body", "w1"))
            .filter(index.records().term("tenant", &b"0"[..]).unwrap());
        let score = best.hits(&snapshot).unwrap().items[0].score;
        (score, store.measure(|_| search.count(&snapshot).unwrap()).1.keys_read)
    });
    assert!(of_all.1 > 20 * of_few.1 && of_all.0 > of_few.0, "{of_all:?} {of_few:?}");
}

#[test]
fn other_types_of_groups_are_refused() {
    let store = Memory::new();
    fn declare<G: keyloom_tables::parts::KeyShape + 'static>(
        store: &Memory,
        make: impl Fn(&Subspace) -> TextIndex<u32, Text, G>,
    ) -> keyloom::Result<()> {
        let schema = Schema::open(store, "blog")?;
        let texts = schema.table::<u32, Text>("texts")?;
        schema.derive(&texts, "text", 1, |space| Ok(with_fields(make(space)))).map(drop)
    }
    declare(&store, grouped).unwrap();
    declare(&store, grouped).unwrap();
    let by_category = |space: &Subspace| {
        let of = |_: &u32, text: &Text| Group::of(text.group.1);
        TextIndex::grouped_with_keys_as_ids(space, of)
    };
    for refused in [declare(&store, by_category), declare(&store, TextIndex::with_keys_as_ids)] {
        let error = refused.unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(SchemaError::Contradiction { .. })), "{error}");
    }
}

#[test]
fn indexes_without_groups_keep_their_definition() {
    let index = with_fields(TextIndex::<u32, Text>::new(&space()));
    assert_eq!(
        index.options(),
        "texts \"title\" Frequencies by words/2 lower_case/3 max_bytes/1(255), \"body\" Positions by words/2 lower_case/3 max_bytes/1(255), with lists of lengths, positions in blocks, records: dense ids, fields \"title\" of values, \"year\" of integers"
    );
    assert_eq!(index.parts(), "\"title\" of string");
}

#[test]
fn bytes_of_the_group_count_in_the_length_of_a_term() {
    let (store, index) = (Memory::new(), grouped(&space()));
    let texts = table().with(&index);
    let put = |tenant: usize, term: usize| {
        let group = (vec![b'a'; tenant], 0);
        let text = Text { group, title: String::new(), body: "w".repeat(term), year: 0 };
        store.transact(|txn| texts.put(txn, &1, &text))
    };
    put(100, 200).unwrap();
    put(200, 100).unwrap();
    // The list of the document lengths has the empty term.
    for (tenant, term, named) in [(400, 200, "www"), (600, 0, "\"\"")] {
        let error = put(tenant, term).unwrap_err();
        let refused = error.downcast_ref::<TextError>();
        assert!(matches!(refused, Some(TextError::TermTooLong { bytes: 615..630, .. })), "{error}");
        assert!(error.to_string().contains(named), "{error}");
    }
}

#[test]
fn a_group_is_not_maintained_alone() {
    let index = grouped(&space());
    let of_group = index.group((b"a", 0));
    let (store, texts) = (Memory::new(), table().with(&*of_group));
    let text = beside(0).remove(&0).unwrap();
    let refused = |error: Error| assert!(error.to_string().contains("whole index"), "{error}");
    refused(store.transact(|txn| texts.put(txn, &1, &text)).unwrap_err());
    refused(of_group.check(&store.snapshot().unwrap(), &texts).unwrap_err());
    refused(of_group.repair(&store, &texts).unwrap_err());
}

#[test]
fn filters_with_the_name_of_the_group_field_are_refused() {
    let (store, name) = (Memory::new(), "(group)");
    let title = |_: &u32, text: &Text| one(&text.title);
    let text = beside(0).remove(&0).unwrap();
    for index in [
        grouped(&space()).values(name, title),
        grouped(&space()).single_value(name, |_, text| single(&text.group.0[..])),
        grouped(&space()).integers(name, |_, text| Some(text.year)).values("other", title),
    ] {
        let texts = table().with(&index);
        let snapshot = store.snapshot().unwrap();
        let of_group = index.group((b"0", 0));
        for error in [
            store.transact(|txn| texts.put(txn, &1, &text)).unwrap_err(),
            index.check(&snapshot, &texts).unwrap_err(),
            index.repair(&store, &texts).unwrap_err(),
            of_group.search(Query::none_of([Query::All])).hits(&snapshot).unwrap_err(),
        ] {
            let refused = error.downcast_ref();
            let Some(TextError::ReservedField { field, .. }) = refused else { panic!("{error}") };
            assert_eq!(field, name);
            assert!(error.to_string().contains("choose another name"), "{error}");
        }
    }
    assert_eq!(laws::dump_all(&store), laws::Dump::new());
}

#[test]
fn text_fields_may_be_named_like_the_group_field() {
    let name = "(group)";
    let year = |_: &u32, text: &Text| Some(text.year);
    let index = grouped(&space())
        .field(name, Analyzer::simple(), |_, text: &Text, add| add(&text.body))
        .integers("year", year);
    let alone = TextIndex::<u32, Text>::new(&Subspace::new("alone")).integers(name, year);
    let store = Memory::new();
    let texts = table().with(&index).with(&alone);
    store.transact(|txn| texts.put_many(txn, beside(200))).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(index.check(&snapshot, &texts).unwrap(), []);
    assert_eq!(alone.check(&snapshot, &texts).unwrap(), []);
    let of_group = index.group((b"0", 0));
    for (query, count) in [(Query::term(name, "rabbit"), 3), (Query::All, 3)] {
        assert_eq!(of_group.search(query).count(&snapshot).unwrap(), count);
    }
}

#[test]
fn continuations_of_another_group_are_refused() {
    let index = grouped(&space());
    let store = stored(&index, &beside(100));
    let snapshot = store.snapshot().unwrap();
    let search = |tenant: &[u8], after: Option<Continuation>| {
        let of_group = index.group((tenant, 0));
        of_group.search(Query::term("body", "rabbit")).limit(2).after(after).hits(&snapshot)
    };
    let next = search(b"1", None).unwrap().next;
    assert_eq!(search(b"1", next.clone()).unwrap().items.len(), 2);
    let error = search(b"2", next).unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
}

struct Groups;

impl Subject for Groups {
    type Key = u32;
    type Value = Text;
    type Kind = Grouped;
    type Answers = Vec<i64>;

    const FIDELITY: Fidelity = Fidelity::Bytes;

    fn make(&self, space: &Subspace) -> keyloom::Result<Grouped> {
        Ok(grouped(space))
    }

    fn record(&self, n: u32, version: u32) -> (u32, Text) {
        let half = version / 2;
        let all: Vec<Parts> = all_groups().collect();
        // Versions 0 and 1 are equal, and each other version is in another group.
        let group = all[(n + half) as usize % all.len()].clone();
        let body = if version % 5 == 4 { String::new() } else { format!("a w{}", n % 3) };
        (n, Text { group, title: String::new(), body, year: 2_000 })
    }

    fn answers(&self, index: &Grouped, reader: &impl Reader) -> keyloom::Result<Vec<i64>> {
        let count = |parts: Parts| {
            let of_group = index.group((&parts.0, parts.1));
            let counts = [Query::term("body", "w1"), Query::All]
                .map(|query| of_group.search(query).count(reader));
            counts.into_iter().map(|count| Ok(count? as i64)).collect::<keyloom::Result<Vec<_>>>()
        };
        let counts = all_groups().map(count).collect::<keyloom::Result<Vec<_>>>()?;
        Ok(counts.concat())
    }

    fn model(&self, records: &BTreeMap<u32, Text>) -> Vec<i64> {
        let count = |parts: Parts| {
            let own = of_group(records, &parts);
            let with_term = own.values().filter(|text| text.body.ends_with("w1")).count();
            [with_term as i64, own.len() as i64]
        };
        all_groups().flat_map(count).collect()
    }

    fn is_neutral(&self, value: &[u8]) -> bool {
        value == [0; 8]
    }
}

#[test]
fn groups_keep_the_laws_in_memory() {
    check_maintained(|| Ok(Memory::new()), &Groups);
    check_maintained(|| Ok(Memory::builder().optimistic(true).build()), &Groups);
}
