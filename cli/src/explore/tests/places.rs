//! Points on the map, compared with the records that the test wrote.

use std::collections::BTreeSet;

use keyloom_spatial::{BoundingBox, Group, LatLng, PointIndex};

use super::*;

pub(super) type Pin = (f64, f64);

pub(super) fn pins(many: u32) -> Vec<Pin> {
    // Multiples of irrational numbers are spread evenly.
    (0..many)
        .map(f64::from)
        .map(|n| {
            (n * 0.618_033_988_75 % 1.0 * 160.0 - 80.0, n * 0.754_877_666_25 % 1.0 * 359.0 - 179.0)
        })
        .collect()
}

pub(super) fn filled<K>(keys: &[K], pins: &[Pin]) -> Large
where
    K: keyloom_kit::RecordKey + Clone + 'static,
{
    let store = Metered::new(Memory::new());
    let schema = Schema::open(&store, "trip").unwrap();
    let table = schema.table::<K, Pin>("pins").unwrap();
    let make = |space: &keyloom::Subspace| {
        Ok(PointIndex::new(space, |_: &K, pin: &Pin| LatLng::new(pin.0, pin.1).map(Some)))
    };
    schema.derive(&table, "by_place", 1, make).unwrap();
    store
        .transact(|txn| keys.iter().zip(pins).try_for_each(|(key, pin)| table.put(txn, key, pin)))
        .unwrap();
    Large::of(store)
}

pub(super) fn in_box(area: &str) -> Params {
    Params { area: area.into(), ..named("trip/pins.by_place") }
}

fn position(place: &Value) -> Pin {
    (place["latitude"].as_f64().unwrap(), place["longitude"].as_f64().unwrap())
}

#[test]
fn a_sample_of_many_points_is_spread_over_the_map() {
    let pins = pins(20_000);
    let large = filled(&(0..20_000_u32).collect::<Vec<_>>(), &pins);
    let found = large.view("places", named("trip/pins.by_place"));
    let points = found["points"].as_array().unwrap();
    assert!((60..=90).contains(&points.len()), "{}", points.len());
    assert_eq!(found["complete"], false);
    let mut octants = BTreeSet::new();
    for point in points {
        let (latitude, longitude) = position(point);
        let id: usize = point["record"].as_str().unwrap().parse().unwrap();
        assert_eq!(pins[id], (latitude, longitude));
        octants.insert((latitude > 0.0, (longitude / 90.0).floor() as i64));
    }
    assert_eq!(octants.len(), 8);
}

#[test]
fn few_points_are_all_shown_and_many_at_one_place_are_one() {
    for many in [0, 1, 2, 25] {
        let pins = pins(many);
        let large = filled(&(0..many).collect::<Vec<_>>(), &pins);
        let found = large.view("places", named("trip/pins.by_place"));
        assert_eq!(found["complete"], true, "{many}");
        let mut shown: Vec<_> = found["points"].as_array().unwrap().iter().map(position).collect();
        let mut expected = pins.clone();
        for all in [&mut shown, &mut expected] {
            all.sort_by(|a, b| a.partial_cmp(b).unwrap());
        }
        assert_eq!(shown, expected);
    }
    let crowd = filled(&(0..500_u32).collect::<Vec<_>>(), &[(48.85, 2.35); 500]);
    let found = crowd.view("places", named("trip/pins.by_place"));
    assert_eq!(found["points"].as_array().unwrap().len(), 1);
}

#[test]
fn a_box_lists_its_entries_with_their_records_and_its_ranges() {
    let pins = pins(20_000);
    let large = filled(&(0..20_000_u32).collect::<Vec<_>>(), &pins);
    for (area, [south, west, north, east]) in [
        ("41,0,47,9", [41.0, 0.0, 47.0, 9.0]),
        (" -20, 176 ,-15,-177", [-20.0, 176.0, -15.0, -177.0]),
    ] {
        let found = &large.view("places", in_box(area))["box"];
        let area = BoundingBox::new(south, west, north, east).unwrap();
        let is_inside =
            |pin: &Pin| keyloom_spatial::Area::contains(&area, &LatLng::new(pin.0, pin.1).unwrap());
        let expected: BTreeSet<usize> =
            (0..pins.len()).filter(|id| is_inside(&pins[*id])).collect();
        assert!(expected.len() > 5, "{}", expected.len());
        let rows = found["entries"].as_array().unwrap();
        let shown: BTreeSet<usize> = rows
            .iter()
            .map(|row| row["place"]["record"].as_str().unwrap().parse().unwrap())
            .collect();
        assert_eq!((shown, &found["more"]), (expected, &Value::Bool(false)));
        assert!(rows.iter().all(|row| row["record"]["state"] == "found"));
        let cells = found["cells"].as_array().unwrap();
        assert!(cells.iter().any(|cell| cell["relation"] == "across"));
        assert!((1..=16).contains(&found["ranges"].as_u64().unwrap()));
    }
    let world = &large.view("places", in_box("-90,-180,90,180"))["box"];
    assert_eq!((world["entries"].as_array().unwrap().len(), &world["more"]), (40, &true.into()));
    for wrong in ["1,2,3", "1,2,3,4,5", "a,b,c,d", "50,0,40,1", "nan,0,1,1", "0,0,inf,1", ","] {
        assert!(!large.refusal("places", in_box(wrong)).is_empty(), "{wrong}");
    }
    assert!(large.refusal("places", named("trip/pins")).contains("is not an index of points"));
}

#[test]
fn hostile_record_keys_are_shown_as_escaped_elements() {
    let long = "x".repeat(400);
    let ids = ["", "<img src=x onerror=alert(1)>", "\0\u{1b}[31m\n", &long].map(str::to_owned);
    let places = pins(4);
    let large = filled(&ids, &places);
    let found = large.view("places", named("trip/pins.by_place"));
    let shown: BTreeSet<String> = found["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["record"].as_str().unwrap().to_owned())
        .collect();
    let expected: BTreeSet<String> =
        ids.iter().map(|id| shown::element(&keyloom::key::Element::Str(id.clone()))).collect();
    assert_eq!(shown, expected);
    assert!(shown.iter().all(|one| !one.contains(char::is_control)));
    // The entry of a point leads to its record.
    let key = found["points"][0]["key_hex"].as_str().unwrap();
    let related = large.view("related", Params { key: key.into(), ..Params::default() });
    assert_eq!(related["record"]["state"], "found");
}

#[test]
fn points_of_groups_are_shown_group_by_group() {
    let store = Metered::new(Memory::new());
    let schema = Schema::open(&store, "fleet").unwrap();
    let vans = schema.table::<u32, (String, f64, f64)>("vans").unwrap();
    let make = |space: &keyloom::Subspace| {
        Ok(PointIndex::grouped(space, |_: &u32, van: &(String, f64, f64)| {
            Ok(Some((Group::of(&van.0), LatLng::new(van.1, van.2)?)))
        }))
    };
    schema.derive(&vans, "by_place", 1, make).unwrap();
    let put = |id: u32, tenant: &str| {
        store.transact(|txn| vans.put(txn, &id, &(tenant.into(), f64::from(id), 7.0)))
    };
    for (id, tenant) in [(1, "acme"), (2, "acme"), (3, "<b>")] {
        put(id, tenant).unwrap();
    }
    let large = Large::of(store);
    let first = large.view("places", named("fleet/vans.by_place"));
    assert_eq!(
        (&first["group"], first["points"].as_array().unwrap().len()),
        (&"(\"<b>\",)".into(), 1)
    );
    let group = first["next_group"]["hex"].as_str().unwrap().to_owned();
    let params = || Params { group: group.clone(), ..named("fleet/vans.by_place") };
    let next = large.view("places", params());
    assert_eq!((next["points"].as_array().unwrap().len(), &next["next_group"]), (2, &Value::Null));
    let listed = large.view("places", Params { area: "1.5,0,9,9".into(), ..params() });
    assert_eq!(listed["box"]["entries"][0]["place"]["record"], "2");
    assert_eq!(listed["box"]["entries"].as_array().unwrap().len(), 1);
    for wrong in ["zz", "02"] {
        assert!(
            !large
                .refusal("places", Params { group: wrong.into(), ..named("fleet/vans.by_place") })
                .is_empty()
        );
    }
}
