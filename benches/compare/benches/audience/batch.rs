//! The number of audiences from which one pass over the forward index is cheaper than the inverted
//! index for each audience.

use std::ops::ControlFlow;
use std::time::Instant;

use keyloom::Reader;
use keyloom_patterns::bitmaps::BitmapExpr;

use crate::clicks::{Audience, CATEGORIES, CITIES, SITES};

/// Typical saved audiences: visitors of popular sites.
fn audiences(index: &super::keyloom::Users, count: u32) -> Vec<BitmapExpr> {
    let audience = |n: u32| Audience {
        site: n % (SITES / 10),
        city: n / 7 % (CITIES / 10),
        not_category: n / 3 % CATEGORIES,
    };
    (0..count).map(|n| super::keyloom::audience(index, &audience(n))).collect()
}

pub fn measure(snapshot: &impl Reader) {
    println!("\nmany audiences, each by itself and in one pass:");
    let index = super::keyloom::index();
    let mut costs = Vec::new();
    for count in [1, 100, 1_000, 10_000] {
        let audiences = audiences(&index, count);
        let started = Instant::now();
        let each: Vec<u64> = audiences.iter().map(|one| one.count(snapshot).unwrap()).collect();
        let by_itself = started.elapsed().as_secs_f64() * 1e3;
        let batch = index.batch(&audiences).unwrap();
        let started = Instant::now();
        assert_eq!(batch.counts(snapshot, |_| ControlFlow::Continue(())).unwrap(), each);
        let together = started.elapsed().as_secs_f64() * 1e3;
        println!("    {count:>6} audiences  {by_itself:>9.1} ms  {together:>9.1} ms");
        costs.push((f64::from(count), by_itself, together));
    }
    let (Some(first), Some(last)) = (costs.first(), costs.last()) else { return };
    let slope = |of: fn(&(f64, f64, f64)) -> f64| (of(last) - of(first)) / (last.0 - first.0);
    let saved = slope(|cost| cost.1) - slope(|cost| cost.2);
    match saved > 0.0 {
        true => println!("    one pass is cheaper from about {:.0} audiences on", first.2 / saved),
        false => println!("    one pass is never cheaper: to combine costs more than to read"),
    }
}
