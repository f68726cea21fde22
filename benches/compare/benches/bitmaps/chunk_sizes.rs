//! Chunk sizes, compared on a mix of reads and on a mix of writes.

use std::hint::black_box;

use keyloom::lmdb::LmdbTransaction;
use keyloom::{KeyBuf, Order, Reader, Result, Store, Subspace, Writer};
use keyloom_compare::{Contender, compare};

use super::layout::{CANDIDATES, Layout};
use super::pages::Pages;
use super::{Scratch, random_ids};

/// A layout in a separate store, with bitmaps of several densities.
struct Candidate {
    layout: Layout,
    scratch: Scratch,
}

/// Each density occurs twice, because an AND needs two bitmaps. The order is ascending, like the
/// keys.
const DENSITIES: [f64; 5] = [0.001, 0.01, 0.05, 0.1, 0.3];

pub fn measure(universe: u64) {
    println!("the size of a chunk");
    let candidates: Vec<Candidate> =
        CANDIDATES.map(|layout| Candidate::load(layout, universe)).into();
    for pair in [(0.3, 0.3), (0.1, 0.1), (0.05, 0.05), (0.01, 0.01), (0.001, 0.001), (0.1, 0.001)] {
        let name = format!("AND-count, {} % and {} %", pair.0 * 100.0, pair.1 * 100.0);
        each(&candidates, &name, 1, 60, |candidate| {
            let bitmaps = [(pair.0, 0), (pair.1, 1)].map(|(density, copy)| space(density, copy));
            Box::new(move || {
                black_box(candidate.and_count(&bitmaps));
            })
        });
    }
    for density in DENSITIES {
        let name = format!("contains, {} %", density * 100.0);
        each(&candidates, &name, 200, 200, |candidate| {
            let (mut random, bitmap) = (fastrand::Rng::with_seed(9), space(density, 0));
            Box::new(move || {
                let snapshot = candidate.scratch.store.snapshot().unwrap();
                for _ in 0..200 {
                    black_box(candidate.contains(&snapshot, &bitmap, random.u64(..universe)));
                }
            })
        });
    }
    for density in DENSITIES {
        for ids in [1, 100] {
            let name = format!("changed in a transaction: {ids}, {} %", density * 100.0);
            each(&candidates, &name, ids, 300, |candidate| {
                let (mut random, bitmap) = (fastrand::Rng::with_seed(10), space(density, 0));
                Box::new(move || candidate.change(&bitmap, ids, || random.u64(..universe)))
            });
        }
    }
    for candidate in &candidates {
        candidate.show_pages(universe);
    }
    println!();
}

fn each<'c>(
    candidates: &'c [Candidate],
    name: &str,
    operations: usize,
    rounds: usize,
    work: impl Fn(&'c Candidate) -> Box<dyn FnMut() + 'c>,
) {
    let mut work: Vec<_> = candidates.iter().map(work).collect();
    let mut contenders: Vec<Contender<'_>> = candidates
        .iter()
        .zip(&mut work)
        .map(|(c, work)| (c.layout.name, &mut **work as _))
        .collect();
    compare(name, operations, rounds, &mut contenders);
}

fn space(density: f64, copy: u32) -> Subspace {
    Subspace::new(&(1, density, copy))
}

impl Candidate {
    fn load(layout: Layout, universe: u64) -> Self {
        let scratch = Scratch::new();
        let mut sizes = String::new();
        for (n, density) in DENSITIES.into_iter().enumerate() {
            let before = scratch.bytes();
            for copy in 0..2 {
                let mut chunks: Vec<(KeyBuf, Vec<u8>)> = Vec::new();
                let ids = random_ids((n * 2) as u64 + u64::from(copy), universe, density);
                layout.for_each_chunk(ids, |chunk, words| {
                    let mut value = Vec::new();
                    layout.encode(words, &mut value);
                    chunks.push((space(density, copy).pack(&chunk), value));
                });
                let chunks = chunks.iter();
                let put = |txn: &mut LmdbTransaction<'_>| {
                    chunks.clone().try_for_each(|(key, value)| txn.put(key, value))
                };
                scratch.store.transact(put).unwrap();
            }
            let kib = (scratch.bytes() - before) / 2 / 1_024;
            sizes += &format!(", {} %: {kib} KiB", density * 100.0);
        }
        println!("    on disk, {}{sizes}", layout.name);
        Self { layout, scratch }
    }

    fn and_count(&self, bitmaps: &[Subspace; 2]) -> u32 {
        let snapshot = self.scratch.store.snapshot().unwrap();
        let entries = |space: &Subspace| snapshot.range(space.range(), Order::Ascending).unwrap();
        let [a, b] = bitmaps.each_ref().map(entries);
        let mut scratch = self.layout.words();
        // Both bitmaps have all chunks, except the last ones of sparse bitmaps with the smallest
        // chunk size.
        let both = a.zip(b).map(|(a, b)| (a.unwrap().1, b.unwrap().1));
        both.map(|(a, b)| self.layout.and_count(a, b, &mut scratch)).sum()
    }

    fn contains(&self, reader: &impl Reader, bitmap: &Subspace, id: u64) -> bool {
        let key = bitmap.pack(&(id / self.layout.ids));
        let value = reader.get(&key).unwrap();
        value.is_some_and(|value| self.layout.contains(&value, id % self.layout.ids))
    }

    /// Alternately sets ids that are absent, and clears ids that are present.
    fn change(&self, bitmap: &Subspace, ids: usize, mut random: impl FnMut() -> u64) {
        let ids: Vec<u64> = (0..ids).map(|_| random()).collect();
        let change = |txn: &mut LmdbTransaction<'_>| {
            ids.iter().try_for_each(|id| self.change_one(txn, bitmap, *id))
        };
        self.scratch.store.transact(change).unwrap();
    }

    fn change_one(&self, txn: &mut impl Writer, bitmap: &Subspace, id: u64) -> Result<()> {
        let key = bitmap.pack(&(id / self.layout.ids));
        let mut words = self.layout.words();
        if let Some(value) = txn.get(&key)? {
            self.layout.load(&value, &mut words);
        }
        let offset = id % self.layout.ids;
        words[offset as usize / 64] ^= 1 << (offset % 64);
        let mut value = Vec::new();
        self.layout.encode(&words, &mut value);
        txn.put(&key, &value)
    }

    /// The average number of pages that a commit of one changed id writes.
    fn show_pages(&self, universe: u64) {
        let mut random = fastrand::Rng::with_seed(11);
        for density in [0.01, 0.05, 0.1] {
            let bitmap = space(density, 0);
            let pages = Pages::of_commits(&self.scratch, bitmap.prefix(), 100, || {
                self.change(&bitmap, 1, || random.u64(..universe));
            });
            println!(
                "    pages of a commit at {} %, {}: {pages}",
                density * 100.0,
                self.layout.name
            );
        }
    }
}
