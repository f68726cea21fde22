//! Faults and bad input.

use keyloom::{Error, Fault, Faulty, Store};
use keyloom_spatial::BoundingBox;

use super::boxes::{Edges, UNITS};
use super::fixture::Things;
use keyloom_testing::laws::refused;

fn some() -> Vec<Edges> {
    (0..4).map(|n: i64| Edges([n, n, n + 1, n + 1].map(|n| n * UNITS))).collect()
}

pub fn a_fault_while_reading_ends_a_query(store: &(impl Store + Clone)) {
    let things = Things::new();
    let boxes = (0..60).map(|n: i64| {
        let (y, x) = (n % 8 * UNITS, n / 8 * UNITS);
        Edges([y, x, y + UNITS / 2, x + UNITS / 2])
    });
    things.put(store, &boxes.collect::<Vec<_>>());
    let faulty = Faulty::new(store.clone());
    let area = BoundingBox::new(1.0, 1.0, 6.0, 6.0).unwrap();
    let (mut failed, mut whole) = (0, 0);
    for n in 0..200 {
        let snapshot = faulty.snapshot().unwrap();
        faulty.fail_at(n, Fault::Error);
        let is_ok: Vec<bool> = match things.index.overlapping(area).extents(&snapshot) {
            Ok(extents) => extents.map(|extent| extent.is_ok()).collect(),
            Err(_) => vec![false],
        };
        faulty.fail_at(n, Fault::Error);
        let count = things.index.overlapping(area).count(&snapshot);
        faulty.clear_fault();
        match is_ok.iter().position(|is_ok| !is_ok) {
            Some(at) => {
                assert_eq!(at + 1, is_ok.len(), "what has failed stays finished");
                assert!(count.is_err(), "a count is no less than what is there");
                failed += 1;
            }
            None => {
                assert_eq!(count.unwrap(), is_ok.len() as u64);
                whole += 1;
            }
        }
    }
    assert!(failed > 4 && whole > 4, "{failed} failed, {whole} did not");
}

pub fn bad_input_is_refused_and_nothing_is_written(store: &(impl Store + Clone)) {
    let things = Things::new();
    things.put(store, &some());
    let bad = [
        ([0.0, 0.0, 91.0, 1.0], "the north of the box"),
        ([f64::NAN, 0.0, 1.0, 1.0], "the south of the box"),
        ([0.0, f64::INFINITY, 1.0, 1.0], "the west of the box"),
        ([0.0, 0.0, 1.0, f64::NEG_INFINITY], "the east of the box"),
        ([2.0, 0.0, 1.0, 1.0], "south is north of its north"),
    ];
    for (edges, why) in bad {
        let error = refused(store, |txn| things.table.put(txn, &1, &Some(edges)));
        // The error names the fault and the record.
        let text = error.to_string();
        assert!(text.contains(why) && text.contains(", 1)"), "{text}");
        let good = (7, Some([0.0; 4]));
        refused(store, |txn| things.table.put_many(txn, [good, (8, Some(edges))]));
    }
    let snapshot = store.snapshot().unwrap();
    let area = |east| BoundingBox::new(0.0, 0.0, 5.0, east).unwrap();
    let query = |east| things.index.overlapping(area(east));
    let error = query(5.0).in_ranges(0).unwrap_err();
    assert!(error.to_string().contains("one range or more"), "{error}");

    // Rejected continuations: from another query (even one that reads the same ranges), and bytes
    // that are not a continuation.
    let next = query(5.0).page(&snapshot, 1, None).unwrap().next.unwrap();
    assert!(query(5.0).page(&snapshot, 1, Some(&next)).is_ok());
    let others = [
        query(5.000_000_1).page(&snapshot, 1, Some(&next)),
        things.index.inside(area(5.0)).page(&snapshot, 1, Some(&next)),
        query(5.0).page(&snapshot, 1, Some(&keyloom_tables::Continuation::from_bytes(b""))),
    ];
    for other in others {
        let error = other.err().unwrap();
        assert!(
            matches!(error, Error::InvalidArgument { what: "the continuation", .. }),
            "{error}"
        );
    }
}
