//! Fields, values and containers of an inverted index, compared with the records that the test
//! wrote.

use keyloom_bitmaps::{CHUNK_IDS, InvertedIndex, one};
use keyloom_text::{Analyzer, TextIndex};

use super::*;

const FIRST: u64 = 36_000;
/// The last id, in a chunk far from the others.
const FAR: u64 = 100 * CHUNK_IDS + 7;

/// The value of a record by its id: each has a form of its own.
fn form(id: u64) -> &'static str {
    match id {
        _ if id >= CHUNK_IDS => "array",
        0..5_000 => "runs",
        _ if id.is_multiple_of(37) => "blocks",
        _ if id.is_multiple_of(9_973) => "array",
        _ => "bitset",
    }
}

fn filled() -> Large {
    let store = Metered::new(Memory::new());
    let schema = Schema::open(&store, "ads").unwrap();
    let users = schema.table::<u64, ()>("users").unwrap();
    let make = |space: &keyloom::Subspace| {
        Ok(InvertedIndex::with_keys_as_ids(space)
            .field("form", |id: &u64, ()| one(form(*id)))
            .field("many", |id: &u64, ()| one((id % 30, "<b>\u{1b}")))
            .integers("half", |id, ()| Some((*id / 2 % 8) as i64)))
    };
    schema.derive(&users, "sets", 1, make).unwrap();
    let ids = (0..FIRST).chain([FAR]).map(|id| (id, ()));
    store.transact(|txn| users.put_many(txn, ids.clone())).unwrap();
    Large::of(store)
}

fn of_field(field: &str) -> Params {
    Params { field: field.into(), ..named("ads/users.sets") }
}

fn rows<'f>(found: &'f Value, name: &str) -> &'f [Value] {
    found[name].as_array().unwrap()
}

/// Forms, ids and bytes of the containers.
fn containers(found: &Value) -> Vec<(u64, &str, u64, u64)> {
    let number = |one: &Value, name: &str| one[name].as_u64().unwrap();
    let of = |one| {
        (
            number(one, "chunk"),
            one["form"].as_str().unwrap(),
            number(one, "ids"),
            number(one, "bytes"),
        )
    };
    rows(found, "containers").iter().map(of).collect()
}

fn expected(is_of: impl Fn(u64) -> bool, chunk: u64) -> u64 {
    let ids = (0..FIRST).chain([FAR]).filter(|id| id / CHUNK_IDS == chunk && is_of(*id));
    ids.count() as u64
}

#[test]
fn containers_have_the_forms_and_counts_of_their_ids() {
    let large = filled();
    let all = large.view("bitmaps", named("ads/users.sets"));
    let fields: Vec<_> = rows(&all, "fields")
        .iter()
        .map(|one| (one["name"].clone(), one["is_integers"].clone()))
        .collect();
    let (values, integers) = (Value::Bool(false), Value::Bool(true));
    let of_values = ["form", "many"].map(|name| (Value::from(name), values.clone()));
    let expected_fields = [&of_values[..], &[("half".into(), integers)]].concat();
    assert_eq!(fields, expected_fields);
    // A run takes 4 bytes, one id of an array 2.
    assert_eq!(
        containers(&all),
        [(0, "runs", CHUNK_IDS, 5), (1, "runs", FIRST - CHUNK_IDS, 5), (100, "array", 1, 3)]
    );
    assert_eq!(all["chunks"], 101);
    let listed = large.view("bitmaps", of_field("form"));
    let counts: Vec<_> = rows(&listed, "values")
        .iter()
        .map(|one| (one["value"].as_str().unwrap(), one["ids"].as_u64().unwrap()))
        .collect();
    let count = |name| (0..FIRST).chain([FAR]).filter(|id| form(*id) == name).count() as u64;
    let names = ["array", "bitset", "blocks", "runs"];
    let quoted = names.map(|name| (format!("{name:?}"), count(name)));
    assert_eq!(counts, quoted.each_ref().map(|(name, ids)| (name.as_str(), *ids)));
    for value in rows(&listed, "values") {
        let name = value["value"].as_str().unwrap().trim_matches(['(', ')', ',', '"']);
        let params = Params { value: value["hex"].as_str().unwrap().into(), ..of_field("form") };
        let found = large.view("bitmaps", params);
        let first = containers(&found)[0];
        let ids = expected(|id| form(id) == name, first.0);
        let bytes = match first.1 {
            "array" => 1 + 2 * ids,
            "runs" => 5,
            "blocks" => 130 + ids,
            _ => 4_080,
        };
        assert_eq!(first, (0, name, ids, bytes), "{found}");
        let buckets: Vec<u64> = rows(&found, "containers")[0]["buckets"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one.as_u64().unwrap())
            .collect();
        let own = |at: u64| expected(|id| form(id) == name && id / 1_016 == at, 0);
        assert_eq!(buckets, (0..32).map(own).collect::<Vec<_>>(), "{name}");
        // The control: the ids of other values have other counts.
        assert_ne!(ids, expected(|id| form(id) != name, 0));
    }
}

#[test]
fn values_and_containers_are_listed_page_by_page() {
    let large = filled();
    let (mut values, mut after) = (Vec::new(), String::new());
    loop {
        let page = large.view("bitmaps", Params { after: after.clone(), ..of_field("many") });
        values.extend(
            rows(&page, "values").iter().map(|one| one["value"].as_str().unwrap().to_owned()),
        );
        match page["next_value"].as_str() {
            Some(next) => after = next.into(),
            None => break,
        }
    }
    let expected: Vec<_> = (0..30).map(|n| format!("({n}, \"<b>\\u{{1b}}\")")).collect();
    assert_eq!(values, expected);
    let (mut slices, mut last) = (Vec::new(), String::new());
    loop {
        let page = large.view("bitmaps", Params { last: last.clone(), ..of_field("half") });
        slices.extend(rows(&page, "containers").iter().map(|one| {
            (
                one["chunk"].as_u64().unwrap(),
                one["slice"].as_u64().unwrap(),
                one["ids"].as_u64().unwrap(),
            )
        }));
        match page["next"].as_str() {
            Some(next) => last = next.into(),
            None => break,
        }
    }
    // The bits of the integers 0 to 7, of two chunks, and 3 for the last id.
    let bit = |chunk: u64, bit: u64| self::expected(|id| ((id / 2 % 8) >> bit) & 1 == 1, chunk);
    let of_chunk = |chunk: u64| {
        let present = (chunk, 0, self::expected(|_| true, chunk));
        let bits = (0..3).map(move |n| (chunk, n + 2, bit(chunk, n)));
        std::iter::once(present).chain(bits).filter(|(.., ids)| *ids > 0).collect::<Vec<_>>()
    };
    assert_eq!(slices, [0, 1, 100].map(of_chunk).concat());
    for (params, why) in [
        (named("ads/users"), "is not an inverted index"),
        (Params { value: "zz".into(), ..of_field("form") }, "hexadecimal"),
    ] {
        assert!(large.refusal("bitmaps", params).contains(why), "{why}");
    }
    let none = large.view("bitmaps", of_field("<script>"));
    assert_eq!((rows(&none, "values").len(), &none["is_chosen"]), (0, &false.into()));
}

#[test]
fn a_text_index_has_the_bitmaps_of_its_records() {
    let store = Metered::new(Memory::new());
    let schema = Schema::open(&store, "library").unwrap();
    let texts = schema.table::<u32, String>("texts").unwrap();
    let make = |space: &keyloom::Subspace| {
        Ok(TextIndex::with_keys_as_ids(space)
            .field("text", Analyzer::simple(), |_: &u32, text: &String, add| add(text))
            .values("length", |_, text| one(text.len() as u64)))
    };
    schema.derive(&texts, "words", 1, make).unwrap();
    store
        .transact(|txn| texts.put_many(txn, (0..40).map(|n| (n, "x".repeat(1 + n as usize % 4)))))
        .unwrap();
    let large = Large::of(store);
    let found =
        large.view("bitmaps", Params { field: "length".into(), ..named("library/texts.words") });
    let counts: Vec<_> = rows(&found, "values")
        .iter()
        .map(|one| (one["value"].as_str().unwrap(), one["ids"].as_u64().unwrap()))
        .collect();
    assert_eq!(counts, [("1", 10), ("2", 10), ("3", 10), ("4", 10)]);
}

#[test]
fn many_containers_are_read_page_by_page() {
    let store = Metered::new(Memory::new());
    let schema = Schema::open(&store, "ads").unwrap();
    let users = schema.table::<u64, ()>("users").unwrap();
    let make = |space: &keyloom::Subspace| {
        Ok(InvertedIndex::with_keys_as_ids(space).field("all", |id: &u64, ()| one(id % 12)))
    };
    schema.derive(&users, "sets", 1, make).unwrap();
    // Each value has an id in each of 60 chunks.
    let ids = (0..60).flat_map(|chunk| {
        let first = (chunk * CHUNK_IDS).next_multiple_of(12);
        (first..first + 12).map(|id| (id, ()))
    });
    store.transact(|txn| users.put_many(txn, ids.clone())).unwrap();
    let large = Large::of(store);
    let (mut chunks, mut last) = (Vec::new(), String::new());
    loop {
        let value = shown::hex(&pack(&5_u64));
        let page = large.view("bitmaps", Params { last, value, ..of_field("all") });
        let listed = &rows(&page, "values")[0];
        assert_eq!((&listed["ids"], &listed["more"]), (&3.into(), &true.into()));
        assert!(containers(&page).iter().all(|(_, form, ids, _)| (*form, *ids) == ("array", 1)));
        chunks.extend(containers(&page).iter().map(|(chunk, ..)| *chunk));
        match page["next"].as_str() {
            Some(next) => last = next.into(),
            None => break,
        }
    }
    assert_eq!(chunks, (0..60).collect::<Vec<_>>());
}
