//! An index of events: maintenance, check, repair, and costs.

use std::ops::ControlFlow;

use keyloom::{Error, Metered, Order, Reader, Store};
use keyloom_spatial::Circle;
use keyloom_spatial::GeoCell;
use keyloom_tables::Maintained;
use keyloom_tables::Scan;
use keyloom_tables::derived::RepairOptions;

use super::fixture::{Event, Events, WIDTH_MS, position};
use keyloom_testing::laws::{clear, counts, writing};

fn repaired(events: &Events, store: &impl Store) {
    let options = RepairOptions { batch: 3, resume: None };
    let go_on = |_: &_| ControlFlow::Continue(());
    assert!(events.index.repair_with(store, &events.table, &options, go_on).unwrap().finished);
}

const EVENTS: [Event; 4] = [(1.0, 2.0, 3), (3.0, 4.0, -5), (90.0, 5.0, 1_000), (-3.0, 180.0, 9)];

pub fn bins_of_another_width_are_refused_and_repair_makes_them_again(store: &impl Store) {
    let before = Events::new(WIDTH_MS.unsigned_abs());
    for other in [1, 999, 1_001, 86_400_000] {
        clear(store);
        before.put(store, &EVENTS);
        let after = Events::new(other);
        // One record was put after the others.
        store.transact(|txn| after.table.put(txn, &7, &Some((1.0, 1.0, 1)))).unwrap();
        for events in [&before, &after] {
            let snapshot = store.snapshot().unwrap();
            let error = events.index.within(GeoCell::WORLD, 0..1).count(&snapshot).unwrap_err();
            let Error::InvalidArgument { what, value, why } = &error else { panic!("{error:?}") };
            assert_eq!(*what, "the width of the time bins");
            let stored =
                if events.index.within(GeoCell::WORLD, ..).page(&snapshot, 1, None).is_err() {
                    value
                } else {
                    panic!("a page was given")
                };
            assert!(stored.contains("1000 ms") && stored.contains(&format!("{other} ms")));
            assert!(why.contains("repair"));
        }
        repaired(&after, store);
        let snapshot = store.snapshot().unwrap();
        assert_eq!(after.index.within(GeoCell::WORLD, ..).count(&snapshot).unwrap(), 5);
        assert_eq!(after.faults(store), [""; 0]);
    }
}

pub fn operations_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    clear(store);
    let events = Events::new(WIDTH_MS.unsigned_abs());
    // Three bins, with an event at each place in each bin, a second later than in the previous bin.
    let grid: Vec<Event> = (0..2_700_i64)
        .map(|n| {
            let place = n % 900;
            ((place / 30) as f64 - 15.0, (place % 30) as f64 - 15.0, n / 900 * 5_000 + place)
        })
        .collect();
    events.put(store, &grid);
    let metered = Metered::new(store.clone());
    // The record and its entry; after a move also the old entry; at the same place and time only
    // the record.
    let put = |event: Event| writing(&metered, |txn| events.table.put(txn, &9_000, &Some(event)));
    assert_eq!(put((50.0, 50.0, 70_000)), [1, 0, 0, 2]);
    assert_eq!(put((60.0, 50.0, 70_000)), [1, 0, 1, 3]);
    assert_eq!(put((60.0, 50.0, 80_000)), [1, 0, 1, 3]);
    assert_eq!(put((60.0, 50.0, 80_000)), [1, 0, 1, 1]);
    assert_eq!(writing(&metered, |txn| events.table.delete(txn, &9_000).map(drop)), [1, 0, 1, 2]);

    let (centre, metres) = (position(0.5, 0.5), 700_000.0);
    let circle = Circle::new(centre, metres).unwrap();
    for (times, bins) in [(0..1_000, 1_u64), (100..700, 1), (0..20_000, 3), (5_200..10_300, 2)] {
        let wanted = grid.iter().filter(|event| {
            centre.distance(&position(event.0, event.1)) <= metres && times.contains(&event.2)
        });
        let wanted = wanted.count();
        assert!(wanted > 10);
        for (ranges, most) in [(4, 6.0), (16, 5.5), (64, 4.5)] {
            let snapshot = metered.snapshot().unwrap();
            let before = counts(metered.cost());
            let query = events.index.within(circle, times.clone()).in_ranges(ranges).unwrap();
            let mut points = query.points(&snapshot).unwrap();
            assert_eq!(points.by_ref().map(Result::unwrap).count(), wanted);
            let explain = points.explain();
            let [gets, seeks, keys, written] = before;
            // The costs that a query explains are those of the store.
            assert_eq!(
                counts(metered.cost()),
                [gets, seeks + explain.ranges, keys + explain.keys_scanned, written]
            );
            assert!(explain.planned <= bins * ranges as u64, "{explain}");
            let leaps = explain.ranges - explain.planned.min(explain.ranges);
            let useless = explain.keys_scanned - wanted as u64;
            // Besides the planned ranges, a query begins two for intervals of other widths, one to
            // find each bin, one to find the end, and one for each gap that it seeks over.
            assert!(leaps <= 2 + bins + 1 + useless / 8, "{explain}");
            let per_hit = (explain.keys_scanned - bins) as f64 / wanted as f64;
            // On stores that read entries in pages, it is cheaper to scan over the entries.
            let is_near = snapshot.prefetched() == 0;
            assert!(per_hit <= most || !is_near, "{ranges}, {times:?}: {explain}");
        }
    }
    the_first_events_cost_their_bin(&metered, &events, circle);
}

/// In the order of times, the first event costs the query of its bin, and a key to find the bin.
/// The costs that a query explains are those of the store.
fn the_first_events_cost_their_bin(metered: &Metered<impl Store>, events: &Events, circle: Circle) {
    let snapshot = metered.snapshot().unwrap();
    let cost = |read: &mut dyn FnMut()| {
        let [gets, ranges, keys, written] = counts(metered.cost());
        read();
        let after = counts(metered.cost());
        assert_eq!((after[0], after[3]), (gets, written));
        [after[1] - ranges, after[2] - keys]
    };
    let by_time = |order| events.index.within(circle, ..).by_time(&snapshot, order).unwrap();
    // The first and the last bin of the grid.
    for (order, bin) in [(Order::Ascending, 0..1_000), (Order::Descending, 10_000..11_000)] {
        let [ranges, keys] = cost(&mut || {
            events.index.within(circle, bin.clone()).count(&snapshot).unwrap();
        });
        let first = cost(&mut || {
            let first = by_time(order).next().unwrap().unwrap();
            assert!(bin.contains(&first.time()));
        });
        assert_eq!(first, [ranges + 1, keys + 1], "{order:?}");
        let mut explained = [0; 2];
        let all = cost(&mut || {
            let mut all = by_time(order);
            all.by_ref().for_each(|event| drop(event.unwrap()));
            explained = [all.explain().ranges, all.explain().keys_scanned];
        });
        assert_eq!(explained, all, "{order:?}");
    }
}
