//! The counts of an explained query, compared with those of the same query of a program with types,
//! on a store that counts its reads.

use keyloom::{Cost, Order, Reader};
use keyloom_kit::Scan;
use keyloom_spatial::{BoundingBox, LatLng, PointIndex};
use keyloom_text::{Analyzer, Query, TextIndex};

use super::places::{Pin, filled as with_pins, in_box, pins};
use super::text::{TEXTS, filled as with_texts, of_term};
use super::*;

/// Ranges, keys of ranges and records that exist.
type Counts = (u64, u64, u64);

fn counts(found: &Value) -> Counts {
    let total = |name: &str| found["total"][name].as_u64().unwrap();
    // The totals are those of the steps and of the drawing.
    let steps = found["steps"].as_array().unwrap();
    let of_steps: u64 = steps.iter().map(|step| step["keys_read"].as_u64().unwrap()).sum();
    assert_eq!(of_steps, total("keys_read"), "{found}");
    assert_eq!(marks(found, "returned") + marks(found, "read"), of_steps, "{found}");
    assert_eq!(marks(found, "missing") + total("fetched"), total("gets"), "{found}");
    (total("ranges"), total("scanned"), total("fetched"))
}

/// The keys of the drawing with this mark.
fn marks(found: &Value, mark: &str) -> u64 {
    let lanes = found["lanes"].as_array().unwrap().iter();
    let spans = lanes.flat_map(|lane| lane["spans"].as_array().unwrap());
    let keys = spans.flat_map(|span| span["keys"].as_array().unwrap());
    keys.filter(|key| key["mark"] == mark).count() as u64
}

/// The counts of reads that fetch `records` of the keys that are read.
fn of_cost(cost: Cost, records: u64) -> Counts {
    (cost.ranges, cost.keys_read - records, records)
}

fn of_parts(name: &str, parts: &str) -> Params {
    Params { parts: parts.into(), ..named(name) }
}

/// The keys of a view besides those of the query: the schemas, and the ends of each lane.
fn keys_beside(large: &Large, params: Params) -> (u64, u64) {
    let (found, cost) = large.store.measure(|_| answer(&large.site, "explain", &params).unwrap());
    let found = found.unwrap();
    let (_, schemas) =
        large.store.measure(|_| crate::catalog::Catalog::with_faults(&large.site.store));
    let lanes = found["lanes"].as_array().unwrap().len() as u64;
    (cost.keys_read - schemas.keys_read - found["total"]["keys_read"].as_u64().unwrap(), 2 * lanes)
}

#[test]
fn an_index_query_reads_what_a_program_reads() {
    let large = Large::new();
    let schema = Schema::open(&large.store, "hall").unwrap();
    let people = schema.table::<u32, Person>("people").unwrap();
    let by_town = schema.index(&people, "by_town", 1, |_, one: &Person| entry(one.town)).unwrap();
    for (parts, town, most, records) in [("(4,)", 4, 21, 20), ("(7,)", 7, 21, 0)] {
        let found = large.view("explain", of_parts("hall/people.by_town", parts));
        let (_, cost) = large.store.measure(|store| {
            let snapshot = store.snapshot().unwrap();
            let range = by_town.space().range_of(&town);
            let page = snapshot.range(range, Order::Ascending).unwrap().take(most);
            let keys: Vec<u32> = page
                .map(|entry| entry.unwrap().0.to_vec())
                .map(|key| keyloom::key::unpack::<(i64, u32, u32)>(&key).unwrap().2)
                .collect();
            people.get_many(&snapshot, keys.iter().take(records)).unwrap();
        });
        assert_eq!(counts(&found), of_cost(cost, records as u64), "{parts}");
        assert_eq!(found["total"]["results"], records, "{parts}");
        assert_eq!(found["stopped"].as_str(), (records > 0).then_some("results"), "{parts}");
        assert_eq!(found["steps"][0]["returned"], records);
        let (beside, expected) = keys_beside(&large, of_parts("hall/people.by_town", parts));
        assert_eq!(beside, expected);
        // The control: the counts of another query differ.
        let other = large.view("explain", of_parts("hall/people.by_name", "(\"n7\",)"));
        assert_ne!(counts(&other), of_cost(cost, records as u64));
        assert_eq!(counts(&other), (1, 1, 1));
    }
}

#[test]
fn a_filter_on_a_later_part_reads_up_to_the_limit() {
    let large = Large::new();
    let found = large.view("explain", of_parts("hall/people.by_town", "(_, 5)"));
    let (ranges, scanned, fetched) = counts(&found);
    // The key that the reader refuses is not in the trace.
    assert_eq!((ranges, scanned, fetched, &found["stopped"]), (1, 64, 0, &"keys".into()));
    assert_eq!((marks(&found, "returned"), found["total"]["results"].as_u64()), (0, Some(0)));
    let none = large.view("explain", of_parts("hall/people.by_town", "(0, 7)"));
    assert_eq!((counts(&none), none["total"]["results"].as_u64()), ((1, 1, 1), Some(1)));
    for (name, parts) in
        [("hall/people.by_town", "(4"), ("hall/people.by_town", "0xff"), ("hall/no", "")]
    {
        assert!(!large.refusal("explain", of_parts(name, parts)).is_empty(), "{parts}");
    }
}

#[test]
fn a_scan_of_a_table_fetches_nothing() {
    let large = Large::new();
    let found = large.view("explain", of_parts("hall/people", "(19990..,)"));
    assert_eq!((counts(&found), &found["stopped"]), ((1, 10, 0), &Value::Null));
    let step = &found["steps"][0];
    let of = |name: &str| step[name].as_str().unwrap().to_owned();
    assert!(of("from").starts_with("from (") && of("from").ends_with(", 19990)"), "{step}");
    assert!(of("to").starts_with("through the last of ("), "{step}");
    let lane = &found["lanes"][0];
    assert_eq!((&lane["has_before"], &lane["has_after"]), (&true.into(), &false.into()));
    let all = large.view("explain", Params { reverse: "yes".into(), ..named("hall/people") });
    assert_eq!((counts(&all), &all["stopped"]), ((1, 21, 0), &"results".into()));
    assert_eq!(all["lanes"][0]["has_after"], false);
    assert!(all["lanes"][0]["last"].as_str().unwrap().ends_with(", 19999)"));
}

#[test]
fn a_box_reads_what_a_query_of_a_program_reads() {
    let pins = pins(20_000);
    let large = with_pins(&(0..20_000_u32).collect::<Vec<_>>(), &pins);
    let schema = Schema::open(&large.store, "trip").unwrap();
    let table = schema.table::<u32, Pin>("pins").unwrap();
    let make = |space: &keyloom::Subspace| {
        Ok(PointIndex::new(space, |_: &u32, pin: &Pin| LatLng::new(pin.0, pin.1).map(Some)))
    };
    let by_place = schema.derive(&table, "by_place", 1, make).unwrap();
    let mut seen = Vec::new();
    for (area, [south, west, north, east]) in [
        ("41,0,45,5", [41.0, 0.0, 45.0, 5.0]),
        ("-20,176,-17,-179", [-20.0, 176.0, -17.0, -179.0]),
        ("10,10,10.1,10.1", [10.0, 10.0, 10.1, 10.1]),
    ] {
        let found = large.view("explain", in_box(area));
        let area = BoundingBox::new(south, west, north, east).unwrap();
        let ((explain, returned), cost) = large.store.measure(|store| {
            let snapshot = store.snapshot().unwrap();
            let mut walk = by_place.pattern().within(area).points(&snapshot).unwrap();
            let keys: Vec<u32> =
                walk.by_ref().map(|one| one.unwrap().record_key().unwrap()).collect();
            let explain = walk.explain();
            table.get_many(&snapshot, &keys).unwrap();
            (explain, keys.len() as u64)
        });
        assert!(returned < 20 && found["stopped"].is_null(), "{found}");
        assert_eq!(found["library"], explain.to_string());
        assert_eq!(counts(&found), (explain.ranges, explain.keys_scanned, returned));
        assert_eq!(counts(&found), of_cost(cost, returned));
        let steps = found["steps"].as_array().unwrap();
        let of_steps: u64 = steps.iter().filter_map(|step| step["returned"].as_u64()).sum();
        assert_eq!(of_steps, explain.keys_returned);
        seen.push(counts(&found));
    }
    // The control: the boxes differ in their counts.
    assert!(seen[0] != seen[1] && seen[1] != seen[2], "{seen:?}");
    let world = large.view("explain", in_box("-90,-180,90,180"));
    assert_eq!(world["stopped"], "results");
    let thin = large.view("explain", in_box("-89,0,89,0.001"));
    assert_eq!((&thin["stopped"], counts(&thin).1), (&"keys".into(), 64));
    for wrong in ["", "1,2,3", "a,b,c,d", "50,0,40,1"] {
        assert!(!large.refusal("explain", in_box(wrong)).is_empty(), "{wrong}");
    }
}

#[test]
fn a_term_reads_what_a_search_of_a_program_reads() {
    let numbers: Vec<u32> = (0..TEXTS as u32).collect();
    let large = with_texts(&numbers, TextIndex::with_keys_as_ids);
    let schema = Schema::open(&large.store, "library").unwrap();
    let texts = schema.table::<u32, String>("texts").unwrap();
    let make = |space: &keyloom::Subspace| {
        Ok(TextIndex::with_keys_as_ids(space).field(
            "text",
            Analyzer::simple(),
            |_: &u32, text: &String, add| add(text),
        ))
    };
    let words = schema.derive(&texts, "words", 1, make).unwrap();
    let mut seen = Vec::new();
    for term in ["all", "rare", "seven", "nothing"] {
        let found = large.view("explain", of_term(term));
        let search = words.pattern().search(Query::term("text", term)).limit(20);
        let explain = search.explain(&large.store.snapshot().unwrap()).unwrap();
        let (hits, cost) = large.store.measure(|store| {
            let snapshot = store.snapshot().unwrap();
            let keys = search.hits(&snapshot).unwrap().items;
            let keys: Vec<u32> = keys.iter().map(|hit| hit.key).collect();
            if !keys.is_empty() {
                texts.get_many(&snapshot, &keys).unwrap();
            }
            keys.len() as u64
        });
        let total = |name: &str| found["total"][name].as_u64().unwrap();
        assert_eq!((total("keys_read"), total("ranges")), (cost.keys_read, cost.ranges), "{term}");
        assert_eq!(total("gets"), cost.gets, "{term}");
        assert_eq!(total("keys_read"), explain.keys_read + hits, "{term}");
        assert_eq!(total("results"), hits, "{term}");
        counts(&found);
        seen.push(total("keys_read"));
    }
    assert!(seen[0] != seen[1] && seen[1] != seen[3], "{seen:?}");
    for wrong in ["", "zz"] {
        let params = Params { group: wrong.into(), ..named("library/texts.words") };
        assert!(!large.refusal("explain", params).is_empty());
    }
}

#[test]
fn dense_ids_lead_to_records_of_composite_and_hostile_keys() {
    let keys: Vec<_> = (0..TEXTS as u32).map(|n| (n % 10, format!("<script>{n}\u{1b}"))).collect();
    let large = with_texts(&keys, TextIndex::new);
    let found = large.view("explain", of_term("rare"));
    assert_eq!(found["total"]["results"], 1);
    let lanes = found["lanes"].as_array().unwrap();
    let table = lanes.iter().find(|lane| lane["name"] == "library/texts").unwrap();
    let [span] = &table["spans"].as_array().unwrap()[..] else { panic!("{table}") };
    let key = &span["keys"][0];
    assert_eq!(key["mark"], "returned");
    assert!(key["key"].as_str().unwrap().ends_with("0, \"<script>400\\u{1b}\")"), "{key}");
}
