//! Size of the index on disk, compared with roaring bitmaps of the same values in their serialized
//! format, without a store around them.

use ::keyloom::lmdb::Durability;
use ::keyloom::{Lmdb, Order, Reader, Result, Store, Subspace, Writer};
use roaring::RoaringBitmap;

use crate::keyloom::{FIELDS, TABLE, index};

/// Header of each entry of an LMDB page.
const ENTRY_HEADER: u64 = 8;
/// An entry that fills more than half of a page has its value on overflow pages.
const MOST_ON_A_PAGE: u64 = 2_038;

/// Empties the store.
pub fn measure(store: &Lmdb) {
    println!(
        "\nroom on disk; the ratio is to the serialized roaring bitmaps, with runs where these are smaller"
    );
    let index = index();
    let fields: Vec<(&str, u64)> = FIELDS
        .iter()
        .map(|field| (*field, serialized(&store.snapshot().unwrap(), field)))
        .collect();
    let (mut terms, mut all_packed, mut all_of_roaring) = (0, 0, 0);
    for (field, of_roaring) in fields {
        let space = index.space().child(&("terms", field));
        println!("    {field:<9} {}", Entries::of(&store.snapshot().unwrap(), &space));
        let packed = copied(store, &space);
        println!(
            "    {field:<9} {packed:>9} bytes of pages when loaded in the order of their keys: {:.2}",
            packed as f64 / of_roaring as f64
        );
        let stored = delete(store, &space);
        show(field, stored, of_roaring);
        all_packed += packed;
        terms += stored;
        all_of_roaring += of_roaring;
    }
    show("all terms", terms, all_of_roaring);
    show("in order", all_packed, all_of_roaring);
    for (what, space) in [
        ("forward index", index.space().child("direct")),
        ("integers", index.space().child("integers")),
        ("ids and counters", index.space().clone()),
        ("the records themselves", Subspace::new(&TABLE)),
    ] {
        println!("    {what}: {} bytes", delete(store, &space));
    }
}

fn show(what: &str, stored: u64, of_roaring: u64) {
    let ratio = stored as f64 / of_roaring as f64;
    println!("    {what:<9} {stored:>9} bytes of pages, roaring {of_roaring:>9}: {ratio:.2}");
}

/// Size of the bitmaps of all values of a field, as the roaring crate serializes them.
fn serialized(reader: &impl Reader, field: &str) -> u64 {
    let index = index();
    let values = index.values::<_, u32, _>(reader, field, ()).unwrap();
    let sizes = values.map(|value| {
        let mut ids: RoaringBitmap = index.term(field, value?)?.to_roaring(reader)?;
        ids.optimize();
        Ok(ids.serialized_size() as u64)
    });
    sizes.sum::<Result<u64>>().unwrap()
}

/// Size of the pages that the entries of a subspace fill in a store of their own.
fn copied(store: &Lmdb, space: &Subspace) -> u64 {
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore).map_bytes(4 << 30);
    let copy = options.open(directory.path()).unwrap();
    let snapshot = store.snapshot().unwrap();
    let empty = bytes_of_pages(&copy);
    let load = copy.transact(|txn| {
        let mut entries = snapshot.range(space.range(), Order::Ascending)?;
        entries.try_for_each(|entry| entry.and_then(|(key, value)| txn.put(key, value)))
    });
    load.unwrap();
    bytes_of_pages(&copy) - empty
}

/// Deletes the entries of a subspace. Returns the size in bytes of the pages that this freed.
fn delete(store: &Lmdb, space: &Subspace) -> u64 {
    let before = bytes_of_pages(store);
    store.transact(|txn| txn.delete_range(space.range())).unwrap();
    before - bytes_of_pages(store)
}

fn bytes_of_pages(store: &Lmdb) -> u64 {
    let statistics = store.statistics().unwrap();
    let pages = statistics.leaf_pages + statistics.branch_pages + statistics.overflow_pages;
    pages * u64::from(statistics.page_bytes)
}

/// Contents of the pages.
#[derive(Default)]
struct Entries {
    count: u64,
    keys: u64,
    /// Bytes of values on the pages of the tree.
    values: u64,
    /// Bytes of values on overflow pages.
    apart: u64,
}

impl Entries {
    fn of(reader: &impl Reader, space: &Subspace) -> Self {
        let mut sum = Self::default();
        for entry in reader.range(space.range(), Order::Ascending).unwrap() {
            let (key, value) = entry.unwrap();
            let (key, value) = (key.len() as u64, value.len() as u64);
            sum.count += 1;
            sum.keys += key;
            match ENTRY_HEADER + key + value > MOST_ON_A_PAGE {
                true => sum.apart += 1,
                false => sum.values += value,
            }
        }
        sum
    }
}

impl std::fmt::Display for Entries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { count, keys, values, apart } = self;
        // Two bytes are the offset of an entry on its page.
        let around = count * (ENTRY_HEADER + 2);
        write!(
            f,
            "{count} containers: {keys} bytes of keys, {around} around entries, {values} of values on shared \
             pages; {apart} values on pages of their own"
        )
    }
}
