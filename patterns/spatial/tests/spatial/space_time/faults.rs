//! Faults and bad input.

use std::iter::FusedIterator;
use std::time::Duration;

use keyloom::{Error, Fault, Faulty, Order, Store, Subspace};
use keyloom_spatial::GeoCell;
use keyloom_spatial::{BoundingBox, Circle, SpaceTimeIndex};

use super::fixture::{Event, Events, position};
use keyloom_tables::{Maintained, Table};
use keyloom_testing::laws::{clear, refused};

const EVENTS: [Event; 4] = [(1.0, 2.0, 3), (3.0, 4.0, 2_000), (5.0, 6.0, 0), (90.0, 0.0, -7)];

pub fn a_fault_while_reading_ends_a_query(store: &(impl Store + Clone)) {
    clear(store);
    let events = Events::new(1_000);
    let many: Vec<Event> =
        (0..60).map(|n| (f64::from(n % 8), f64::from(n / 8), i64::from(n) * 100)).collect();
    events.put(store, &many);
    let faulty = Faulty::new(store.clone());
    let circle = Circle::new(position(4.0, 4.0), 350_000.0).unwrap();
    let snapshot = faulty.snapshot().unwrap();
    for order in [None, Some(Order::Ascending), Some(Order::Descending)] {
        let query = || -> keyloom::Result<Box<dyn FusedIterator<Item = _>>> {
            let within = events.index.within(circle, 500..4_500);
            Ok(match order {
                None => Box::new(within.points(&snapshot)?),
                Some(order) => Box::new(within.by_time(&snapshot, order)?),
            })
        };
        faulty.clear_fault();
        let whole: Vec<u32> =
            query().unwrap().map(|event| event.unwrap().record_key().unwrap()).collect();
        assert!(whole.len() > 10);
        let mut failures = 0;
        for n in 0.. {
            faulty.fail_at(n, Fault::Error);
            let (mut found, mut error) = (Vec::new(), None);
            match query() {
                Ok(mut points) => {
                    for event in points.by_ref() {
                        assert!(error.is_none(), "an iterator that has failed stays finished");
                        match event {
                            Ok(event) => found.push(event.record_key().unwrap()),
                            Err(failed) => error = Some(failed),
                        }
                    }
                    assert!(points.next().is_none());
                }
                Err(failed) => error = Some(failed),
            }
            assert_eq!(found, whole[..found.len()]);
            let Some(error) = error else {
                assert_eq!(found, whole);
                break;
            };
            assert!(error.to_string().contains("made to fail"), "{error}");
            failures += 1;
        }
        faulty.clear_fault();
        assert!(failures > 10, "only {failures} operations could fail");
    }
}

pub fn bad_input_is_refused_and_nothing_is_lost(store: &(impl Store + Clone)) {
    clear(store);
    let events = Events::new(1_000);
    events.put(store, &EVENTS);
    for bad in [(91.0, 0.0, 0), (f64::NAN, 0.0, 0), (0.0, f64::INFINITY, 0)] {
        let error = refused(store, |txn| events.table.put(txn, &1, &Some(bad)));
        assert!(error.to_string().contains("degrees"), "{error}");
        // The error names the record.
        assert!(error.to_string().contains(", 1)"), "{error}");
        refused(store, |txn| {
            events.table.put_many(txn, [(7, Some((1.0, 1.0, 1))), (8, Some(bad))])
        });
    }
    // A record that was there before the index is left out of it.
    let bare = Table::<u32, Option<Event>>::new(events.table.space());
    store.transact(|txn| bare.put(txn, &77, &Some((91.0, 0.0, 0)))).unwrap();
    let repaired = events.index.repair(store, &events.table).unwrap();
    assert_eq!((repaired.records, repaired.entries, repaired.written), (5, 4, 0));
    assert!(events.index.check(&store.snapshot().unwrap(), &events.table).unwrap().is_empty());
    store.transact(|txn| bare.delete(txn, &77)).unwrap();
    let snapshot = store.snapshot().unwrap();
    let error = events.index.within(GeoCell::WORLD, ..).in_ranges(0).unwrap_err();
    assert!(error.to_string().contains("one range or more"), "{error}");
    assert_eq!(events.index.within(GeoCell::WORLD, ..).count(&snapshot).unwrap(), 4);
    // A continuation of another query: for other times, or for another area.
    let query = events.index.within(GeoCell::WORLD, 0..2_500);
    let first = query.page(&snapshot, 1, None).unwrap().next.unwrap();
    let elsewhere = BoundingBox::new(0.0, 0.0, 4.5, 5.0).unwrap();
    let later = events.index.within(GeoCell::WORLD, 1..2_500).page(&snapshot, 1, Some(&first));
    let other = events.index.within(elsewhere, 0..2_500).page(&snapshot, 1, Some(&first));
    for error in [later.err().unwrap(), other.err().unwrap()] {
        assert!(error.to_string().contains("another query"), "{error}");
    }
}

#[test]
fn widths_that_are_none_are_refused() {
    let new = |width| SpaceTimeIndex::new(&Subspace::new("x"), width, |_: &u32, (): &()| Ok(None));
    for width in [
        Duration::ZERO,
        Duration::from_nanos(999_999),
        Duration::from_micros(1_500),
        Duration::from_secs(u64::MAX),
    ] {
        let error = new(width).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { what: "the width of the time bins", .. }));
        assert!(error.to_string().contains("whole number of milliseconds"), "{error}");
    }
    assert!(new(Duration::from_millis(1)).is_ok());
    assert!(new(Duration::from_millis(i64::MAX.unsigned_abs())).is_ok());
}
