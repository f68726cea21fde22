//! Faults, damage and bad input.

use std::ops::ControlFlow;

use keyloom::{Error, Fault, Faulty, Order, Reader, Result, Store, Subspace, Writer};
use keyloom_bitmaps::{Bitmap, BitmapExpr, InvertedIndexError};
use keyloom_tables::{SelectValues, within};

use super::fixture::{Fixture, User, Users};

fn some_users() -> Users {
    let user = |id: u32| User {
        city: Some((id % 3) as u8),
        tags: vec![["a", "b"][id as usize % 2].into()],
        cents: Some(id.into()),
    };
    (0..30).map(|id| (id, user(id))).collect()
}

/// All reports.
fn reports(fixture: &Fixture, reader: &impl Reader) -> Vec<Result<()>> {
    let index = &fixture.index;
    let audience = index.all() - index.term("city", 2_u8).unwrap();
    let mut outcomes = Vec::new();
    let report = || index.report(&audience);
    for report in [report().intersect(), report().walk()] {
        outcomes.push(report.breakdown::<String>(reader, "tag").map(drop));
        outcomes.push(report.breakdown_by::<(String, u8)>(reader, &["tag", "city"]).map(drop));
        outcomes.push(report.sums::<String>(reader, "tag", "cents").map(drop));
    }
    for report in [report().intersect(), report().walk()] {
        outcomes.push(report.sum(reader, "cents").map(drop));
        outcomes.push(report.ranked(reader, "cents", Order::Ascending, 3, None).map(drop));
    }
    let batch = index.batch([&audience]).unwrap();
    outcomes.push(batch.counts(reader, |_| ControlFlow::Continue(())).map(drop));
    outcomes
}

pub fn a_fault_while_a_report_is_made_comes_out(store: &(impl Store + Clone)) {
    let fixture = Fixture::holding(store, &some_users());
    let audience = fixture.index.all() - fixture.index.term("city", 2_u8).unwrap();
    let first = fixture.index.report(&audience);
    let first = first.ranked(&store.snapshot().unwrap(), "cents", Order::Ascending, 3, None);
    let next = first.unwrap().next;
    let faulty = Faulty::new(store.clone());
    for report in 0..15 {
        for n in 0.. {
            faulty.clear_fault();
            let snapshot = faulty.snapshot().unwrap();
            let before = faulty.operations();
            faulty.fail_at(before + n, Fault::Error);
            let index = &fixture.index;
            let asked = index.report(&audience);
            let asked = match report {
                0..3 | 6 | 8 | 10 | 12 => asked.intersect(),
                _ => asked.walk(),
            };
            let outcome = match report {
                0 | 3 => asked.breakdown::<String>(&snapshot, "tag").map(drop),
                1 | 4 => asked.breakdown_by::<(String, u8)>(&snapshot, &["tag", "city"]).map(drop),
                2 | 5 => asked.sums::<String>(&snapshot, "tag", "cents").map(drop),
                6 | 7 => asked.sum(&snapshot, "cents").map(drop),
                8 | 9 => asked.breakdown_of::<String>(&snapshot, "tag", "a").map(drop),
                10 | 11 => {
                    asked.ranked(&snapshot, "cents", Order::Ascending, 4, next.as_ref()).map(drop)
                }
                12 | 13 => {
                    let fields = [("tag", "a".selected()), ("city", within(..2).selected())];
                    asked.breakdown_by_selected::<(String, u8)>(&snapshot, &fields).map(drop)
                }
                _ => {
                    let batch = index.batch([&audience]).unwrap();
                    batch.counts(&snapshot, |_| ControlFlow::Continue(())).map(drop)
                }
            };
            match outcome {
                Err(error) => assert!(error.to_string().contains("made to fail"), "{error}"),
                Ok(()) => {
                    assert!(n > 0, "report {report} reads nothing that can fail");
                    break;
                }
            }
        }
    }
}

pub fn bad_input_is_refused(store: &impl Store) {
    let fixture = Fixture::holding(store, &some_users());
    let (index, snapshot) = (&fixture.index, store.snapshot().unwrap());
    let report = index.report(index.all());
    let says = |error: Error, words: &[&str]| {
        let said = error.to_string();
        assert!(words.iter().all(|word| said.contains(word)), "{words:?} are not all in: {said}");
        error
    };
    let error = report.breakdown::<String>(&snapshot, "colour").unwrap_err();
    let error = says(error, &["colour", "city", "tag", "cents"]);
    assert!(matches!(
        error.downcast_ref::<InvertedIndexError>(),
        Some(InvertedIndexError::UnknownField { .. })
    ));
    says(report.breakdown::<String>(&snapshot, "cents").unwrap_err(), &["cents", "integers"]);
    says(report.sums::<String>(&snapshot, "tag", "city").unwrap_err(), &["city", "values"]);
    says(report.sums::<String>(&snapshot, "tag", "size").unwrap_err(), &["size"]);
    let error = report.breakdown_of::<String>(&snapshot, "tag", 5).unwrap_err();
    says(error, &["tag", "5"]);
    says(report.sum(&snapshot, "city").unwrap_err(), &["city", "values"]);
    says(report.rank(&snapshot, "size", 1).unwrap_err(), &["size"]);
    let error = report.ranked(&snapshot, "size", Order::Ascending, 1, None).unwrap_err();
    says(error, &["size"]);
    let error = report.percentiles(&snapshot, "cents", &[100.5]).unwrap_err();
    says(error, &["percentile", "100.5"]);
    let error = report.breakdown_by::<(String,)>(&snapshot, &[]).unwrap_err();
    says(error, &["the fields", "name one"]);
    let error = report.breakdown_by::<(String, u8)>(&snapshot, &["tag", "else"]).unwrap_err();
    says(error, &["else"]);
    let fields = [("tag", ().selected()), ("city", "Oslo".selected())];
    let error = report.breakdown_by_selected::<(String, u8)>(&snapshot, &fields).unwrap_err();
    says(error, &["city", "Oslo"]);
    // The error names a value of another type.
    says(report.breakdown::<u32>(&snapshot, "tag").unwrap_err(), &["a"]);

    let foreign = Bitmap::new(&Subspace::new("elsewhere"));
    let audiences = [index.all(), index.all() & BitmapExpr::from(&foreign)];
    let error = says(index.batch(&audiences).unwrap_err(), &["audience 1", "elsewhere", "test"]);
    assert!(matches!(
        error.downcast_ref(),
        Some(InvertedIndexError::NotInForwardIndex { audience: 1, .. })
    ));
}

pub fn damage_is_named(store: &impl Store) {
    let fixture = Fixture::holding(store, &some_users());
    let index = fixture.index.space();
    let container = index.pack(&("terms", "tag", "a", 0_u64));
    let column = |field: &str| index.pack(&("direct", field, 0));
    // The slice of the ids that have an integer.
    let slice = index.pack(&("integers", "cents", 0_u64, 0_u8));
    // Three of the reports intersect and three walk. Of the reports on integers, two intersect and
    // two walk. The last reports are those of a batch, which reads cities.
    for (key, bytes, reading) in [
        (&container, &b"\x13no"[..], &[0, 1, 2][..]),
        (&container, b"\x21", &[0, 1, 2]),
        (&column("tag"), b"\x11\x02", &[3, 4, 5]),
        (&column("tag"), b"\x21", &[3, 4, 5]),
        (&column("city"), b"\x13", &[4, 10]),
        (&column("cents"), b"\x11", &[5, 8, 9]),
        (&slice, b"\x21", &[2, 6, 7]),
    ] {
        let whole = store.snapshot().unwrap().get(key).unwrap().unwrap().to_vec();
        store.transact(|txn| txn.put(key, bytes)).unwrap();
        let outcomes = reports(&fixture, &store.snapshot().unwrap());
        for (n, outcome) in outcomes.iter().enumerate() {
            assert_eq!(outcome.is_err(), reading.contains(&n), "{n}");
            if let Err(error) = outcome {
                let said = error.to_string();
                assert!(said.contains(&keyloom::key::display(key).to_string()), "{said}");
            }
        }
        store.transact(|txn| txn.put(key, &whole)).unwrap();
    }
    assert!(reports(&fixture, &store.snapshot().unwrap()).iter().all(Result::is_ok));
}
