//! Bitmaps in chunks on LMDB. Measures the number of ids that two bitmaps share, several chunk
//! sizes, one id set (compared with a whole roaring bitmap under one key), the pages that this
//! dirties, and the size on disk.
//!
//! ```text
//! cargo bench -p keyloom-compare --bench bitmaps [-- IDS]
//! ```
//!
//! Ids are below ten million, unless another number is given. Files are not synced.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "bitmaps/and_count.rs"]
mod and_count;
#[path = "bitmaps/chunk_sizes.rs"]
mod chunk_sizes;
#[path = "bitmaps/layout.rs"]
mod layout;
#[path = "bitmaps/pages.rs"]
mod pages;
#[path = "bitmaps/room.rs"]
mod room;
#[path = "bitmaps/single_ids.rs"]
mod single_ids;

use keyloom::Lmdb;
use keyloom::lmdb::Durability;

fn main() {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse().ok());
    let universe: u64 = numbers.next().unwrap_or(10_000_000);
    println!("ratios are the first / the other: below 1 the first is faster; {universe} ids\n");
    and_count::measure(universe);
    chunk_sizes::measure(universe);
    single_ids::measure();
    room::measure(universe);
}

/// A store in a temporary directory.
struct Scratch {
    store: Lmdb,
    directory: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = Lmdb::options().durability(Durability::MayLoseStore).map_bytes(4 << 30);
        Self { store: options.open(directory.path()).unwrap(), directory }
    }

    /// Size of the entries.
    fn bytes(&self) -> u64 {
        let statistics = self.store.statistics().unwrap();
        let pages = statistics.leaf_pages + statistics.branch_pages + statistics.overflow_pages;
        pages * u64::from(statistics.page_bytes)
    }
}

/// Ids below `universe`, each with the same probability.
fn random_ids(seed: u64, universe: u64, density: f64) -> impl Iterator<Item = u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..universe).filter(move |_| random.f64() < density)
}
