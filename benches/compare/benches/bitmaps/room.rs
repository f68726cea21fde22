//! Size of bitmaps on disk, compared with roaring bitmaps in their serialized format, without a
//! store around them.

use keyloom::{Store, Subspace};
use keyloom_patterns::bitmaps::Bitmap;
use roaring::RoaringBitmap;

use super::{Scratch, random_ids};

pub fn measure(universe: u64) {
    println!(
        "room on disk; the ratio is to serialized roaring bitmaps, with runs where these are smaller"
    );
    for density in [0.0001, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5] {
        let ids = random_ids(1, universe, density).map(|id| id as u32).collect();
        show(&format!("{} %", density * 100.0), universe, ids);
    }
    for (every, length) in [(10_000, 1_000), (1_000, 100), (100, 20)] {
        let mut random = fastrand::Rng::with_seed(4);
        let runs = (0..universe).step_by(every).map(|at| at + random.u64(..every as u64 - length));
        let ids =
            runs.flat_map(|at| at..at + length).filter(|id| *id < universe).map(|id| id as u32);
        show(&format!("runs of {length} in {every}"), universe, ids.collect());
    }
}

fn show(name: &str, universe: u64, mut ids: RoaringBitmap) {
    let scratch = Scratch::new();
    // A field and a value, as in an inverted index.
    let bitmap = Bitmap::new(&Subspace::new(&(7, "terms", "city", "Paris")));
    scratch.store.transact(|txn| bitmap.replace_with_roaring(txn, &ids)).unwrap();
    let loaded = scratch.bytes();
    let mut random = fastrand::Rng::with_seed(5);
    // As many ids are removed as added, mostly each in a different chunk.
    for _ in 0..100 {
        let some = |random: &mut fastrand::Rng| {
            (0..20).map(|_| random.u64(..universe)).collect::<Vec<_>>()
        };
        let (new, old) = (some(&mut random), some(&mut random));
        let old = old.iter().filter_map(|id| ids.select(*id as u32 % ids.len() as u32));
        let old: Vec<u64> = old.map(u64::from).collect();
        scratch.store.transact(|txn| bitmap.insert_many(txn, new.iter().copied())).unwrap();
        scratch.store.transact(|txn| bitmap.remove_many(txn, old.iter().copied())).unwrap();
    }
    let changed_ids = bitmap.to_roaring(&scratch.store.snapshot().unwrap()).unwrap();
    let changed = ratio(scratch.bytes(), changed_ids);
    ids.optimize();
    let roaring = ids.serialized_size();
    println!(
        "    {name:<20} {loaded:>9} bytes, roaring {roaring:>9}: {:.2}; after 4,000 changes: {changed:.2}",
        loaded as f64 / roaring as f64
    );
}

fn ratio(bytes: u64, mut ids: RoaringBitmap) -> f64 {
    ids.optimize();
    bytes as f64 / ids.serialized_size() as f64
}
