//! The read path makes no allocations. The test counts them, without measuring time.
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use keyloom::key::{Packer, pack, unpack};
use keyloom::{
    KeyRange, Lmdb, Memory, Metered, Order, Reader, Store, Subspace, Transaction, Writer,
};
use keyloom_patterns::bitmaps::{BitSliced, Bitmap, BitmapExpr, CHUNK_IDS};
use keyloom_patterns::in_order;

/// The system allocator, which also counts the allocations of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count_one() {
    // In a thread that is ending, the counter may already be dropped; no test reads it.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call is forwarded unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_one();
        // SAFETY: the caller upholds the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count_one();
        // SAFETY: the caller upholds the same contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the same contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count_one();
        // SAFETY: the caller upholds the same contract.
        unsafe { System.realloc(pointer, layout, bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The number of allocations of this thread during `work`.
fn allocations<T>(work: impl FnOnce() -> T) -> u64 {
    let before = ALLOCATIONS.get();
    black_box(work());
    ALLOCATIONS.get() - before
}

const KEYS: u32 = 10_000;

fn key(n: u32) -> [u8; 8] {
    (u64::from(n) << 32 | 0xFFFF).to_be_bytes()
}

fn filled(store: &impl Store) {
    store.transact(|txn| (0..KEYS).try_for_each(|n| txn.put(&key(n), &[7; 100]))).unwrap();
}

fn reads(reader: &impl Reader, per_range: u64) {
    let gets = allocations(|| {
        for n in 0..KEYS {
            assert_eq!(reader.get(&key(n)).unwrap().unwrap().len(), 100);
            assert!(reader.get(&n.to_be_bytes()).unwrap().is_none());
        }
    });
    assert_eq!(gets, 0, "for {} gets", 2 * KEYS);
    let (from, to) = (key(100), key(9_900));
    for order in [Order::Ascending, Order::Descending] {
        for (range, entries) in [
            (KeyRange::all(), KEYS),
            (KeyRange::half_open(&from, &to), 9_800),
            (KeyRange::starting_at(&from), 9_900),
            (KeyRange::new(Bound::Excluded(&from), Bound::Included(&to)), 9_800),
            (KeyRange::prefix(&[0, 0, 1]), 256),
            (KeyRange::children(&[0, 0, 1]), 255),
        ] {
            let mut walk = None;
            let opening = allocations(|| walk = Some(reader.range(range, order).unwrap()));
            assert!(opening <= per_range, "{opening} allocations to open a range");
            let mut walk = walk.unwrap();
            let mut met = 0;
            let walking = allocations(|| {
                for entry in walk.by_ref() {
                    met += u32::from(entry.unwrap().1.len() == 100);
                }
            });
            assert_eq!((met, walking), (entries, 0));
        }
    }
    assert!(allocations(|| drop(reader.first(KeyRange::all()).unwrap())) <= per_range);
}

fn snapshot_and_transaction(store: &impl Store, per_range: u64) {
    filled(store);
    reads(&store.snapshot().unwrap(), per_range);
    // The transaction has uncommitted writes.
    let mut txn = store.begin().unwrap();
    txn.delete(&key(7)).unwrap();
    txn.put(&key(7), &[8; 100]).unwrap();
    reads(&txn, per_range);
    txn.commit().unwrap();
}

#[test]
fn reading_from_memory_allocates_nothing() {
    snapshot_and_transaction(&Memory::new(), 0);
}

#[test]
fn counting_what_is_read_allocates_nothing() {
    snapshot_and_transaction(&Metered::new(Memory::new()), 0);
}

#[test]
fn reading_from_lmdb_allocates_nothing_but_once_per_range() {
    let directory = tempfile::tempdir().unwrap();
    snapshot_and_transaction(&Lmdb::open(directory.path()).unwrap(), 1);
}

/// Counts the allocations of expressions and aggregates over this many chunks.
fn allocations_of_bitmaps(store: &impl Store, chunks: u64) -> Vec<u64> {
    store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
    let [a, b, c] = [1, 2, 3].map(|n| Bitmap::new(&Subspace::new(&n)));
    let values = BitSliced::new(&Subspace::new("values"));
    let ids = |step: usize| (0..chunks * CHUNK_IDS).step_by(step);
    store
        .transact(|txn| {
            a.replace(txn, ids(3))?;
            b.replace(txn, ids(1_000))?;
            c.replace(txn, ids(30))?;
            values.set_many(txn, ids(500).map(|id| (id, id as i64 % 100 - 50)))
        })
        .unwrap();
    let held = BitmapExpr::from(&b).hold(&store.snapshot().unwrap()).unwrap();
    let [a, b, c] = [a, b, c].map(BitmapExpr::from);
    let snapshot = store.snapshot().unwrap();
    let exprs =
        [&a & &b, &a | &b, &b - (&a & &c), (&a ^ &c) & (&held | values.ge(7)), values.lt(0)];
    let of_exprs = exprs.iter().map(|expr| allocations(|| expr.count(&snapshot).unwrap()));
    let ids = |order| allocations(|| exprs[3].ids(&snapshot, in_order(.., order)).unwrap().count());
    let mut all: Vec<u64> =
        of_exprs.chain([Order::Ascending, Order::Descending].map(ids)).collect();
    all.push(allocations(|| values.count_and_sum(&snapshot, Some(&a)).unwrap()));
    all.push(allocations(|| values.max(&snapshot, Some(&a)).unwrap()));
    all
}

#[test]
fn expressions_of_bitmaps_allocate_no_more_for_more_chunks() {
    let directory = tempfile::tempdir().unwrap();
    let lmdb = Lmdb::open(directory.path()).unwrap();
    assert_eq!(allocations_of_bitmaps(&lmdb, 3), allocations_of_bitmaps(&lmdb, 30));
    let memory = Memory::new();
    let few = allocations_of_bitmaps(&memory, 3);
    assert_eq!(few, allocations_of_bitmaps(&memory, 30));
    assert!(few.iter().all(|allocations| *allocations < 40), "{few:?}");
}

#[test]
fn packing_and_unpacking_a_usual_key_allocates_nothing() {
    let packing = allocations(|| pack(&("users", 42_u64, "Zürich", -1_i32, 2.5)));
    assert_eq!(packing, 0);
    let key = pack(&("users", 42_u64, "Zürich", -1_i32, 2.5));
    let unpacking = allocations(|| unpack::<(&str, u64, &str, i32, f64)>(&key).unwrap());
    assert_eq!(unpacking, 0);
    let mut packer = Packer::new();
    assert_eq!(allocations(|| packer.push(&("users", 42)).as_bytes().len()), 0);
}

#[test]
fn packing_allocates_nothing_up_to_64_bytes() {
    let text = "x".repeat(64);
    for length in 0..=62 {
        let text = &text[..length];
        // A packed string needs two bytes more than its length.
        assert_eq!(allocations(|| assert_eq!(pack(&text).len(), length + 2)), 0);
    }
}

#[test]
fn allocations_of_other_threads_are_not_counted() {
    let running = AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while running.load(Ordering::Relaxed) {
                black_box(vec![1_u8; 100]);
            }
        });
        let here = allocations(|| std::thread::sleep(Duration::from_millis(5)));
        running.store(false, Ordering::Relaxed);
        assert_eq!(here, 0);
    });
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| vec![1, 2, 3]), 1);
    assert_eq!(allocations(|| vec![0_u8; 100]), 1);
    assert!(allocations(|| pack(&"x".repeat(100))) > 1);
}
