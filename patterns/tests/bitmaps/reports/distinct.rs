//! Distinct users per day and site: exact with bitmaps, and rolled up with sketches.

use std::collections::BTreeSet;

use keyloom::{Store, Subspace};
use keyloom_bitmaps::{Bitmap, BitmapExpr};
use keyloom_tables::aggregate::{Seen, Sketches};
use keyloom_tables::{Select, Table};

use keyloom_testing::laws::clear;

/// Site, day and user of the n-th visit.
type Visit = (String, u32, u32);

const DAYS: u32 = 5;

fn visit(n: u32) -> Visit {
    let spread = n.wrapping_mul(0x9E37_79B9);
    let site = ["a.org", "b.org"][(spread >> 31) as usize];
    (site.into(), (spread >> 16) % DAYS, (spread >> 8) % 900)
}

/// 2^12 registers have a standard error of 1.6 %; the test allows three standard errors.
const MOST_ERROR: f64 = 3.0 * 0.016;

pub fn distinct_users_are_rolled_up_within_the_error_of_a_sketch(store: &impl Store) {
    clear(store);
    let space = Subspace::new("test");
    let sketches = Sketches::new(&space.child("sketches"), 12, |_id: &u32, visit: &Visit| {
        Seen::one((&visit.0, visit.1), visit.2)
    });
    let sketches = sketches.unwrap();
    let table = Table::<u32, Visit>::new(&space.child("visits")).with(&sketches);
    let visits: Vec<(u32, Visit)> = (0..4_000).map(|n| (n, visit(n))).collect();
    let bitmap = |site: &str, day: u32| Bitmap::new(&space.child(&("users", site, day)));
    store
        .transact(|txn| {
            table.put_many(txn, &visits)?;
            for site in ["a.org", "b.org"] {
                for day in 0..DAYS {
                    let of = visits.iter().filter(|(_, visit)| visit.0 == site && visit.1 == day);
                    bitmap(site, day).insert_many(txn, of.map(|(_, visit)| u64::from(visit.2)))?;
                }
            }
            Ok(())
        })
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    let distinct = |of: &dyn Fn(&Visit) -> bool| {
        let users = visits.iter().map(|(_, visit)| visit).filter(|visit| of(visit));
        users.map(|visit| visit.2).collect::<BTreeSet<u32>>().len() as u64
    };
    let exact = |bitmaps: Vec<Bitmap>| BitmapExpr::any_of(bitmaps).count(&snapshot).unwrap();
    let is_near = |estimate: f64, exact: u64| {
        let error = (estimate - exact as f64).abs() / exact as f64;
        assert!(error < MOST_ERROR, "{estimate} is not near {exact}");
    };
    let all = |site: &str| (0..DAYS).map(|day| bitmap(site, day)).collect::<Vec<_>>();
    // Distinct users of a site on one day, of a site over all days, and overall. No visitor is
    // counted twice.
    let day = distinct(&|visit| visit.0 == "a.org" && visit.1 == 3);
    assert_eq!(exact(vec![bitmap("a.org", 3)]), day);
    is_near(sketches.estimate(&snapshot, ("a.org", 3_u32)).unwrap(), day);
    let site = distinct(&|visit| visit.0 == "b.org");
    assert_eq!(exact(all("b.org")), site);
    is_near(estimate(&sketches, &snapshot, "b.org"), site);
    let everybody = distinct(&|_| true);
    assert_eq!(exact([all("a.org"), all("b.org")].concat()), everybody);
    is_near(estimate(&sketches, &snapshot, ()), everybody);
    assert!(day < site && site < everybody);
}

fn estimate(
    sketches: &Sketches<u32, Visit, (String, u32), u32>,
    snapshot: &impl keyloom::Reader,
    select: impl Select<(String, u32)>,
) -> f64 {
    sketches.estimate_together(snapshot, select).unwrap()
}
