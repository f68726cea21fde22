//! The path of reading does not allocate.
//!
//! A global allocator counts, for each thread by itself, so that the test harness and other tests do
//! not disturb.
#![cfg(feature = "lmdb")]
// An allocator cannot be written without.
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used)]

// It offers more stores than are read here.
#[allow(dead_code)]
mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use common::TemporaryLmdb;
use keyloom::{KeyRange, Memory, Metered, Order, Reader, Store, Writer, key};

struct Counting;

thread_local! {
    // Of a type that needs no destructor and starts with a constant, so that using it within the
    // allocator does not allocate.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count_one() {
    // A thread that is ending has no counter any more, and nobody who reads it.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call is handed to the system's allocator unchanged; counting touches no memory that
// it gives out.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_one();
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count_one();
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count_one();
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// What `work` returns and how often it allocated on this thread.
fn allocations<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = ALLOCATIONS.get();
    let result = work();
    (result, ALLOCATIONS.get() - before)
}

const ENTRIES: u32 = 5_000;

fn fill(store: &impl Store) {
    store
        .transact(|txn| (0..ENTRIES).try_for_each(|n| txn.put(&n.to_be_bytes(), &[n as u8; 100])))
        .unwrap();
}

/// Every kind of bound that opening a range treats in its own way.
fn ranges() -> [(&'static str, KeyRange<'static>); 5] {
    use std::ops::Bound::{Excluded, Included};
    const LOW: &[u8] = &[0, 0, 1, 0];
    const HIGH: &[u8] = &[0, 0, 17, 0];
    [
        ("all", KeyRange::all()),
        ("half open", KeyRange::half_open(LOW, HIGH)),
        ("excluded to included", KeyRange::new(Excluded(LOW), Included(HIGH))),
        ("starting at", KeyRange::starting_at(LOW)),
        ("a prefix", KeyRange::prefix(&[0, 0, 7])),
    ]
}

fn reading_does_not_allocate<R: Reader>(what: &str, reader: &R) {
    let (found, by_get) = allocations(|| {
        let get = |n: u32| reader.get(&n.to_be_bytes()).unwrap().is_some();
        (0..2 * ENTRIES).filter(|&n| get(n)).count()
    });
    assert_eq!(found, ENTRIES as usize);
    assert_eq!(by_get, 0, "{what}: get of keys that are there and of keys that are not");

    for (name, range) in ranges() {
        for order in [Order::Ascending, Order::Descending] {
            let what = format!("{what}, {name}, {order:?}");
            let owned = range.clone();
            let (entries, by_opening) = allocations(|| reader.range(owned, order).unwrap());
            assert!(by_opening <= 1, "{what}: opening allocated {by_opening} times");
            let (walked, by_walking) = allocations(|| {
                entries
                    .map(|entry| black_box(entry.unwrap()))
                    .filter(|(key, _)| key.len() == 4)
                    .count()
            });
            assert!(walked >= 256, "{what}: walked {walked}");
            assert_eq!(by_walking, 0, "{what}: walking {walked} entries");
        }
    }
}

fn on(name: &str, store: &impl Store) {
    fill(store);
    reading_does_not_allocate(&format!("a snapshot of {name}"), &store.snapshot().unwrap());
    let mut txn = store.begin().unwrap();
    reading_does_not_allocate(&format!("a transaction of {name}"), &txn);
    txn.put(&7_u32.to_be_bytes(), b"changed").unwrap();
    reading_does_not_allocate(&format!("a transaction of {name} that wrote"), &txn);
}

#[test]
fn reading_memory_does_not_allocate() {
    on("memory", &Memory::new());
}

#[test]
fn counting_what_is_read_does_not_allocate() {
    on("metered memory", &Metered::new(Memory::new()));
}

#[test]
fn reading_lmdb_does_not_allocate() {
    on("lmdb", &*TemporaryLmdb::new());
}

#[test]
fn packing_a_key_of_up_to_64_bytes_does_not_allocate() {
    let (packed, by_packing) =
        allocations(|| key::pack(&("users", 1_234_567_u64, "name", -5_i32, true)));
    assert_eq!(by_packing, 0, "{} bytes", packed.len());

    let filler = "x".repeat(64);
    for length in 0..=62 {
        let text = filler.get(..length).unwrap();
        // A string takes its bytes and two more.
        let (packed, by_packing) = allocations(|| key::pack(&text));
        assert_eq!((packed.len(), by_packing), (length + 2, 0));
    }
}

#[test]
fn unpacking_borrowed_elements_does_not_allocate() {
    let packed = key::pack(&("users", 1_234_567_u64, &b"bytes"[..], -5_i32, true));
    let (unpacked, by_unpacking) =
        allocations(|| key::unpack::<(&str, u64, &[u8], i32, bool)>(&packed).unwrap());
    assert_eq!(unpacked, ("users", 1_234_567, &b"bytes"[..], -5, true));
    assert_eq!(by_unpacking, 0);
}

#[test]
fn an_allocation_is_counted() {
    let (_, by_vec) = allocations(|| black_box(Vec::<u8>::with_capacity(100)));
    assert_eq!(by_vec, 1);
    let (_, by_growing) = allocations(|| {
        let mut vec = black_box(Vec::<u8>::with_capacity(1));
        vec.resize(1_000, 0);
        black_box(vec)
    });
    assert_eq!(by_growing, 2);
    let (_, by_zeros) = allocations(|| black_box(vec![0_u8; 100]));
    assert_eq!(by_zeros, 1);
    let long = "x".repeat(63);
    let (packed, by_packing) = allocations(|| key::pack(&long.as_str()));
    assert_eq!(packed.len(), 65);
    assert!(by_packing > 0, "a key of 65 bytes leaves the stack");
}

#[test]
fn allocations_of_other_threads_are_not_counted() {
    let running = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while running.load(std::sync::atomic::Ordering::Relaxed) {
                black_box(vec![1_u8; 100]);
            }
        });
        let (_, here) = allocations(|| std::thread::sleep(std::time::Duration::from_millis(5)));
        running.store(false, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(here, 0);
    });
}
