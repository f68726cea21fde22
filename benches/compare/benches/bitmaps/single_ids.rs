//! One id set or cleared, compared with a whole roaring bitmap under one key.

use keyloom::lmdb::LmdbTransaction;
use keyloom::{Reader, Store, Subspace, Writer};
use keyloom_compare::{Contender, compare};
use keyloom_patterns::bitmaps::Bitmap;
use roaring::RoaringBitmap;

use super::pages::Pages;
use super::{Scratch, random_ids};

/// Number of ids that are set: one in ten.
const IDS_SET: [u64; 2] = [1_000_000, 10_000_000];

pub fn measure() {
    for ids_set in IDS_SET {
        let universe = ids_set * 10;
        println!("changes in a bitmap of {ids_set} ids, one in ten of those below {universe}");
        let bitmap = Bitmap::new(&Subspace::new(&1));
        let (chunked, whole) = (Scratch::new(), Scratch::new());
        let ids: RoaringBitmap = random_ids(1, universe, 0.1).map(|id| id as u32).collect();
        chunked.store.transact(|txn| bitmap.replace_with_roaring(txn, &ids)).unwrap();
        put_whole(&whole, &ids);
        // The number of transactions, steps in each, and ids in a step.
        for (name, steps, many) in [
            ("one id and a commit", 1, 1),
            ("one id, 20 times in a transaction", 20, 1),
            ("100 ids at once and a commit", 1, 100),
        ] {
            let mut random = [2, 2].map(fastrand::Rng::with_seed);
            let [a, b] = random.each_mut();
            let mut in_chunks = || change(&chunked, &bitmap, &some(a, steps, many, universe));
            let mut of_whole = || change_whole(&whole, &some(b, steps, many, universe));
            let contenders: &mut [Contender<'_>] =
                &mut [("keyloom", &mut in_chunks), ("whole bitmap", &mut of_whole)];
            let times = 1.0 / compare(name, steps, 40, contenders)[0].median;
            println!("    {times:.0} times as quick");
        }
        let mut random = fastrand::Rng::with_seed(3);
        let pages = Pages::of_commits(&chunked, bitmap.space().prefix(), 100, || {
            change(&chunked, &bitmap, &some(&mut random, 1, 1, universe));
        });
        println!("    pages of a commit: {pages}\n");
    }
}

/// `steps` steps of `many` ids each.
fn some(random: &mut fastrand::Rng, steps: usize, many: usize, universe: u64) -> Vec<Vec<u64>> {
    (0..steps).map(|_| (0..many).map(|_| random.u64(..universe)).collect()).collect()
}

/// Each step sets its ids, or clears them if all were set.
fn change(scratch: &Scratch, bitmap: &Bitmap, steps: &[Vec<u64>]) {
    let change = |txn: &mut LmdbTransaction<'_>| {
        steps.iter().try_for_each(|ids| {
            if bitmap.insert_many(txn, ids.iter().copied())? == 0 {
                bitmap.remove_many(txn, ids.iter().copied())?;
            }
            Ok(())
        })
    };
    scratch.store.transact(change).unwrap();
}

/// Each step reads and writes the whole bitmap.
fn change_whole(scratch: &Scratch, steps: &[Vec<u64>]) {
    let step = |txn: &mut LmdbTransaction<'_>, ids: &Vec<u64>| {
        let stored = txn.get(b"whole")?.unwrap();
        let mut bitmap = RoaringBitmap::deserialize_from(stored).unwrap();
        let new = ids.iter().filter(|id| bitmap.insert(**id as u32)).count();
        if new == 0 {
            bitmap -= RoaringBitmap::from_iter(ids.iter().map(|id| *id as u32));
        }
        txn.put(b"whole", &serialized(&bitmap))
    };
    let change = |txn: &mut LmdbTransaction<'_>| steps.iter().try_for_each(|ids| step(txn, ids));
    scratch.store.transact(change).unwrap();
}

fn put_whole(scratch: &Scratch, ids: &RoaringBitmap) {
    scratch.store.transact(|txn| txn.put(b"whole", &serialized(ids))).unwrap();
}

fn serialized(bitmap: &RoaringBitmap) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(bitmap.serialized_size());
    bitmap.serialize_into(&mut bytes).unwrap();
    bytes
}
