//! The number of ids that two bitmaps share: bitmaps stored in chunks, as plain words in memory, as
//! roaring bitmaps that are stored whole, and as roaring bitmaps in memory.

use std::hint::black_box;

use keyloom::{Store, Subspace};
use keyloom_compare::{Contender, compare};
use keyloom_patterns::bitmaps::{Bitmap, BitmapExpr};
use roaring::RoaringBitmap;

use super::{Scratch, random_ids};

pub fn measure(universe: u64) {
    println!("AND and count, of two bitmaps");
    for densities in
        [(0.5, 0.5), (0.1, 0.1), (0.05, 0.05), (0.01, 0.01), (0.001, 0.001), (0.1, 0.001)]
    {
        let ids = [(1, densities.0), (2, densities.1)];
        let ids = ids.map(|(seed, density)| {
            random_ids(seed, universe, density).map(|id| id as u32).collect()
        });
        let name = format!("{} % and {} %", densities.0 * 100.0, densities.1 * 100.0);
        compare_two(&name, universe, &ids);
    }
    let runs = [(10_000, 4_000), (7_000, 500)].map(|(every, length): (u64, u64)| {
        let ids = (0..universe).step_by(every as usize).flat_map(|at| at..at + length);
        ids.map(|id| id as u32).collect()
    });
    compare_two("runs", universe, &runs);
    println!();
}

fn compare_two(name: &str, universe: u64, ids: &[RoaringBitmap; 2]) {
    let scratch = Scratch::new();
    let bitmaps = [1, 2].map(|n| Bitmap::new(&Subspace::new(&n)));
    for (bitmap, ids) in bitmaps.iter().zip(ids) {
        scratch.store.transact(|txn| bitmap.replace_with_roaring(txn, ids)).unwrap();
    }
    let [a, b] = bitmaps.each_ref().map(BitmapExpr::from);
    let both = a & b;
    let wanted = ids[0].intersection_len(&ids[1]);
    let words = ids.each_ref().map(|ids| plain_words(ids, universe));
    let whole = ids.each_ref().map(|ids| {
        let mut bytes = Vec::new();
        ids.serialize_into(&mut bytes).unwrap();
        bytes
    });
    let mut keyloom = || {
        let snapshot = scratch.store.snapshot().unwrap();
        assert_eq!(both.count(&snapshot).unwrap(), wanted);
    };
    let mut plain = || {
        let [a, b] = black_box(&words);
        let count: u32 = a.iter().zip(b).map(|(a, b)| (a & b).count_ones()).sum();
        assert_eq!(u64::from(count), wanted);
    };
    let mut deserialized = || {
        let [a, b] =
            whole.each_ref().map(|bytes| RoaringBitmap::deserialize_from(&bytes[..]).unwrap());
        assert_eq!(a.intersection_len(&b), wanted);
    };
    let mut in_memory = || {
        let [a, b] = black_box(ids);
        assert_eq!(a.intersection_len(b), wanted);
    };
    let contenders: &mut [Contender<'_>] = &mut [
        ("keyloom on LMDB", &mut keyloom),
        ("plain words", &mut plain),
        ("roaring, deserialized", &mut deserialized),
        ("roaring in memory", &mut in_memory),
    ];
    compare(name, 1, 200, contenders);
}

fn plain_words(ids: &RoaringBitmap, universe: u64) -> Vec<u64> {
    let mut words = vec![0; universe as usize / 64 + 1];
    ids.iter().for_each(|id| words[id as usize / 64] |= 1 << (id % 64));
    words
}
