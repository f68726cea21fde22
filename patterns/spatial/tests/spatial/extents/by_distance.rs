//! Extents by distance, compared with all extents sorted by a distance computed with vectors.

use std::collections::BTreeMap;

use keyloom::{Memory, Metered, Result, Store};
use keyloom_spatial::{BoundingBox, Circle, LatLng, Located};
use keyloom_tables::{Continuation, Scan};
use proptest::prelude::*;

use super::boxes::{Edges, UNITS, edges, on_every_edge};
use super::fixture::{Mutation, Things};
use super::shapes::at;
use super::vectors::nearest;
use keyloom_testing::laws::{counts, long_property};

type Found = Vec<(u16, f64)>;

fn found<B: std::ops::Deref<Target = [u8]>>(
    extents: impl Iterator<Item = Result<Located<B, u16, (BoundingBox, f64)>>>,
) -> Found {
    extents
        .map(|extent| {
            let extent = extent.unwrap();
            (extent.record_key().unwrap(), extent.distance())
        })
        .collect()
}

/// Whether the result has these extents, each with its distance, in the order of the distances.
fn is_right(found: &Found, all: &BTreeMap<u16, f64>) -> bool {
    let margin = |metres: f64| if metres > 19e6 { 1.0 } else { 1e-5 };
    let is_near = |(id, metres): &(u16, f64)| {
        all.get(id).is_some_and(|wanted| (metres - wanted).abs() < margin(*metres))
    };
    let ids: std::collections::BTreeSet<u16> = found.iter().map(|(id, _)| *id).collect();
    ids.len() == found.len()
        && found.len() == all.len()
        && found.iter().all(is_near)
        && found.is_sorted_by(|(_, a), (_, b)| a <= b)
}

fn distances(all: &BTreeMap<u16, Edges>, from: &LatLng) -> BTreeMap<u16, f64> {
    all.iter().map(|(id, edges)| (*id, nearest(from, &edges.bounding_box()))).collect()
}

/// All pages, which change their length.
fn pages(things: &Things, store: &impl Store, from: LatLng) -> Found {
    let snapshot = store.snapshot().unwrap();
    let query = things.index.overlapping(BoundingBox::WORLD);
    let (mut joined, mut after) = (Vec::new(), None::<Vec<u8>>);
    for limit in (1..).step_by(3) {
        let after_bytes = after.as_deref().map(Continuation::from_bytes);
        let page = query.clone().page_by_distance(&snapshot, from, limit, after_bytes.as_ref());
        let page = page.unwrap();
        assert!(page.items.len() == limit || page.next.is_none());
        joined.extend(found(page.items.into_iter().map(Ok)));
        let Some(next) = page.next else { break };
        after = Some(next.as_bytes().to_vec());
    }
    joined
}

pub fn extents_come_in_the_order_of_their_distance(store: &(impl Store + Clone)) {
    let things = Things::new();
    let case = (prop::collection::vec(edges(), 0..150), prop::collection::vec(edges(), 4));
    long_property(case, |(extents, places)| {
        let all = things.put(store, &extents);
        for Edges([south, west, north, east]) in places {
            let (from, other) = (at(south, west), at(north, east));
            let snapshot = store.snapshot().unwrap();
            let nearest = found(things.index.nearest(&snapshot, from).unwrap());
            let wanted = distances(&all, &from);
            assert!(is_right(&nearest, &wanted), "{from}: {nearest:?}, not {wanted:?}");
            assert_eq!(pages(&things, store, from), nearest, "{from}");
            // Within an area, of some records.
            let circle = Circle::new(from, from.distance(&other)).unwrap();
            for query in [things.index.overlapping(circle), things.index.inside(circle)] {
                let odd = |id: &u16| id % 2 == 1;
                let mut ids: Vec<u16> =
                    super::fixture::ids(query.clone().only(&odd).extents(&snapshot).unwrap());
                let sorted = found(query.only(&odd).by_distance(&snapshot, other).unwrap());
                ids.sort_unstable();
                let of_ids = distances(&all, &other).into_iter();
                let of_ids = of_ids.filter(|(id, _)| ids.binary_search(id).is_ok()).collect();
                assert!(is_right(&sorted, &of_ids), "{other}: {sorted:?}, not {of_ids:?}");
            }
        }
    });
}

/// The negative controls: entries whose codes have common bugs.
#[test]
fn codes_that_hide_a_near_extent_are_caught() {
    let extents: Vec<Edges> = on_every_edge().step_by(101).collect();
    let places: Vec<LatLng> =
        on_every_edge().step_by(997).map(|Edges([south, west, ..])| at(south, west)).collect();
    let mutations = [
        (Mutation::None, 0),
        (Mutation::TooDeep, 1),
        (Mutation::NoTurn, 1),
        (Mutation::CornerOnly, 5),
    ];
    for (mutation, at_least) in mutations {
        let store = Memory::new();
        let all = Things::new().put(&store, &extents);
        let things = Things::mutant(mutation, &all);
        things.put(&store, &extents);
        let snapshot = store.snapshot().unwrap();
        let is_wrong = |from: &&LatLng| {
            let found = found(things.index.nearest(&snapshot, **from).unwrap());
            !is_right(&found, &distances(&all, from))
        };
        let wrong = places.iter().filter(is_wrong).count();
        let is_right = if at_least == 0 { wrong == 0 } else { wrong >= at_least };
        assert!(is_right, "{wrong} of {} are wrong with {mutation:?}", places.len());
    }
}

/// A grid of 6,400 boxes: 80 of three degrees, and the others of a tenth of a degree. In one of
/// them are 1,000 boxes of a few centimetres.
fn grid_and_crowd() -> Vec<Edges> {
    let cell = |n: i64| {
        let (south, west) = ((n / 80) * UNITS / 2, (n % 80) * UNITS / 2);
        let size = if n % 80 == 50 { 3 * UNITS } else { UNITS / 10 };
        Edges([south, west, south + size, west + size])
    };
    let (south, west) = (5 * UNITS + 1, 5 * UNITS + 1);
    let crowded = (0..1_000).map(|n| Edges([south, west + n, south + 30_000, west + n + 30_000]));
    (0..6_400).map(cell).chain(crowded).collect()
}

pub fn the_nearest_extents_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    let things = Things::new();
    let all = things.put(store, &grid_and_crowd());
    let metered = Metered::new(store.clone());
    let snapshot = metered.snapshot().unwrap();
    let cost = |from: LatLng, count: usize| {
        let ((nearest, explain), cost) = metered.measure(|_| {
            let mut extents = things.index.nearest(&snapshot, from).unwrap();
            (found(extents.by_ref().take(count)), extents.explain())
        });
        let [gets, begun, read, written] = counts(cost);
        assert_eq!((gets, written), (0, 0));
        assert_eq!((read, explain.keys_returned), (explain.keys_scanned, count as u64));
        let mut wanted: Vec<f64> = distances(&all, &from).into_values().collect();
        wanted.sort_by(f64::total_cmp);
        let is_near = |(found, wanted): (&(u16, f64), &f64)| (found.1 - wanted).abs() < 1e-5;
        assert!(nearest.iter().zip(&wanted).all(is_near), "{nearest:?}");
        (begun, read)
    };
    let [middle, crowd, far] = [(20, 12), (5, 5), (60, 170)]
        .map(|(south, west)| at(south * UNITS + UNITS / 4, west * UNITS + UNITS / 4));
    let remote = store.round_trips().is_some();
    for (from, count, most_begun, most_read) in [
        (middle, 1, 45, 150),
        (middle, 100, 100, 450),
        (crowd, 1, 50, 150),
        (crowd, 1_500, 220, 2_000),
        (far, 1, 70, 400),
        // All of them.
        (far, 7_400, 900, 8_500),
    ] {
        let (begun, read) = cost(from, count);
        assert!(remote || begun <= most_begun && read <= most_read, "{begun} reads, {read} keys");
    }
    // A page reads again the elements that the circle through its beginning crosses.
    let query = things.index.overlapping(BoundingBox::WORLD);
    let first = query.clone().page_by_distance(&snapshot, middle, 1_000, None).unwrap();
    let after = first.next.as_ref();
    let (next, cost) =
        metered.measure(|_| query.page_by_distance(&snapshot, middle, 10, after).unwrap());
    let [_, begun, read, _] = counts(cost);
    assert_eq!(next.items.len(), 10);
    assert!(remote || begun <= 200 && read <= 1_200, "{begun} reads, {read} keys");
}
