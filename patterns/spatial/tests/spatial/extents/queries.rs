//! Every query, compared with a filter over all extents.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::{Memory, Store};
use keyloom_spatial::ExtentQuery;
use keyloom_tables::Continuation;
use keyloom_tables::Page;
use proptest::prelude::*;

use super::boxes::{Edges, anywhere, edges, on_every_edge};
use super::fixture::{Mutation, Things, code, expected, ids, queries};
use keyloom_testing::laws::{long_property, property};

fn ranges() -> impl Strategy<Value = usize> {
    prop::sample::select(vec![1, 2, 7, 16, 64])
}

pub fn every_query_finds_what_a_look_at_all_extents_finds(store: &(impl Store + Clone)) {
    let things = Things::new();
    let asked = (edges(), ranges());
    let case = (prop::collection::vec(edges(), 0..60), prop::collection::vec(asked, 12));
    long_property(case, |(extents, areas)| {
        let all = things.put(store, &extents);
        let snapshot = store.snapshot().unwrap();
        // The extents themselves are also queries, so that many edges are equal.
        let own = extents.iter().take(4).map(|edges| (*edges, 16));
        for (area, ranges) in areas.into_iter().chain(own) {
            for (query, wanted) in queries(&things, &area) {
                let query = query.in_ranges(ranges).unwrap();
                assert!((1..=ranges).contains(&query.ranges()), "{query:?}");
                let found = ids(query.clone().extents(&snapshot).unwrap());
                assert_eq!(found, expected(&all, &wanted), "{query:?}");
                let odd = |id: &u16| id % 2 == 1;
                let odds = found.iter().filter(|id| odd(id)).count() as u64;
                assert_eq!(query.clone().only(&odd).count(&snapshot).unwrap(), odds);
            }
        }
    });
}

/// The number of queries with a wrong result.
fn wrong(
    things: &Things,
    store: &impl Store,
    all: &BTreeMap<u16, Edges>,
    areas: &[Edges],
) -> usize {
    let asked = areas.iter().flat_map(|area| queries(things, area));
    let is_wrong = |(query, wanted): &(ExtentQuery<'_, u16>, _)| {
        // A new snapshot for each query, because some stores limit snapshots to a few seconds.
        let snapshot = store.snapshot().unwrap();
        ids(query.clone().extents(&snapshot).unwrap()) != expected(all, wanted)
    };
    asked.filter(is_wrong).count()
}

fn along_every_edge() -> (Vec<Edges>, Vec<Edges>) {
    let extents: Vec<Edges> = on_every_edge().step_by(101).collect();
    (extents, on_every_edge().skip(3).step_by(43).collect())
}

pub fn queries_along_every_edge_find_what_a_look_at_all_extents_finds(
    store: &(impl Store + Clone),
) {
    let things = Things::new();
    let (extents, areas) = along_every_edge();
    let all = things.put(store, &extents);
    assert!(3 * areas.len() > 1_000);
    assert_eq!(wrong(&things, store, &all, &areas), 0);
}

/// The negative controls: entries whose codes have common bugs.
#[test]
fn codes_without_extent_or_rotation_are_caught() {
    let (extents, areas) = along_every_edge();
    let mutations = [
        (Mutation::None, 0),
        (Mutation::TooDeep, 10),
        (Mutation::NoTurn, 10),
        (Mutation::CornerOnly, 100),
    ];
    for (mutation, at_least) in mutations {
        let store = Memory::new();
        let all = Things::new().put(&store, &extents);
        let things = Things::mutant(mutation, &all);
        things.put(&store, &extents);
        let wrong = wrong(&things, &store, &all, &areas);
        let is_right = if at_least == 0 { wrong == 0 } else { wrong >= at_least };
        assert!(is_right, "{wrong} of the queries are wrong with {mutation:?}");
    }
}

#[test]
fn entry_has_the_code_of_the_smallest_cell_around_the_extent() {
    let (things, store) = (Things::new(), Memory::new());
    property(anywhere(), |edges| {
        things.put(&store, &[edges]);
        let snapshot = store.snapshot().unwrap();
        let found = things.index.as_index().range(&snapshot, ..).unwrap();
        let codes: Vec<u64> = found.map(|found| found.unwrap().parts_as().unwrap()).collect();
        assert_eq!(codes, [code(&edges, Mutation::None)], "{edges:?}");
    });
}

/// A continuation is converted to bytes and back, as for a client. The number of ranges changes
/// between pages.
pub fn pages_join_to_the_whole(store: &(impl Store + Clone)) {
    let things = Things::new();
    let (extents, areas) = along_every_edge();
    things.put(store, extents.iter().chain(&extents[..40]));
    let snapshot = store.snapshot().unwrap();
    for area in areas.iter().step_by(40) {
        let (query, _) = queries(&things, area).into_iter().next().unwrap();
        let all: Vec<u16> = query
            .clone()
            .extents(&snapshot)
            .unwrap()
            .map(|extent| extent.unwrap().record_key().unwrap())
            .collect();
        let (mut joined, mut after) = (Vec::new(), None::<Vec<u8>>);
        for ranges in (1..).step_by(5) {
            let after_bytes = after.as_deref().map(Continuation::from_bytes);
            let query = query.clone().in_ranges(ranges).unwrap();
            let Page { items: extents, next } =
                query.page(&snapshot, 7, after_bytes.as_ref()).unwrap();
            assert!(extents.len() == 7 || next.is_none());
            joined.extend(extents.iter().map(|extent| extent.record_key().unwrap()));
            let Some(next) = next else { break };
            after = Some(next.as_bytes().to_vec());
        }
        assert_eq!(joined, all);
        assert_eq!(joined.iter().collect::<BTreeSet<_>>().len(), joined.len());
        assert!(query.page(&snapshot, 0, None).unwrap().items.is_empty());
    }
}
