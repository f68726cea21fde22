//! Single bit flips: everywhere, and in every field that links pages.

use std::os::unix::fs::FileExt;

use keyloom::lmdb::file::{FileReport, read_meta, verify};

use crate::store::{Store, counted, file_of};

const PAGE: usize = 4096;

/// A file in which bits are flipped and restored.
struct Flipped {
    file: tempfile::NamedTempFile,
    bytes: Vec<u8>,
}

impl Flipped {
    fn new(bytes: Vec<u8>) -> Self {
        Self { file: file_of(&bytes), bytes }
    }

    /// The report with this bit flipped; `None` if the file is refused.
    fn report(&self, bit: usize) -> Option<FileReport> {
        let (at, old) = (bit / 8, self.bytes[bit / 8]);
        self.file.as_file().write_all_at(&[old ^ (1 << (bit % 8))], at as u64).unwrap();
        let report = verify(self.file.path(), |_, _| ());
        self.file.as_file().write_all_at(&[old], at as u64).unwrap();
        report.ok()
    }

    fn is_reported(&self, bit: usize) -> bool {
        self.report(bit).is_none_or(|report| !report.is_sound())
    }
}

fn u16_at(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

/// The bits that link the pages of a file without free pages.
fn structural_bits(bytes: &[u8]) -> Vec<usize> {
    let mut bits = meta_bits(read_newest(bytes));
    let mut page = 2;
    while page < bytes.len() / PAGE {
        let start = page * PAGE;
        let content = &bytes[start..start + PAGE];
        bits.extend((start * 8..(start + 8) * 8).chain((start + 10) * 8..(start + 16) * 8));
        if content[10] == 4 {
            page += u16_at(content, 12) | (u16_at(content, 14) << 16);
            continue;
        }
        page += 1;
        let lower = u16_at(content, 12);
        bits.extend((start + 16) * 8..(start + lower) * 8);
        for offset in (16..lower).step_by(2).map(|at| u16_at(content, at)) {
            bits.extend(entry_bits(content, offset).map(|bit| start * 8 + bit));
        }
    }
    bits
}

/// The bits of an entry's header, except those whose flips may be undetectable: the size of a value
/// in an overflow run, and the lowest bit of sizes that padding may hide. The page number of a run
/// is included.
fn entry_bits(content: &[u8], offset: usize) -> impl Iterator<Item = usize> + use<> {
    let is_leaf = content[10] == 2;
    let in_run = is_leaf && content[offset + 4] == 1;
    let run = offset + 8 + u16_at(content, offset + 6);
    let target = (offset * 8 + usize::from(is_leaf)..(offset + 4) * 8).filter(move |_| !in_run);
    let run = (run * 8..(run + 8) * 8).filter(move |_| in_run);
    let flags = (offset + 4) * 8..(offset + 6) * 8;
    let key_bytes = (offset + 6) * 8 + 1..(offset + 8) * 8;
    target.chain(flags).chain(key_bytes).chain(run)
}

fn read_newest(bytes: &[u8]) -> usize {
    usize::try_from(read_meta(file_of(bytes).path()).unwrap().page).unwrap()
}

/// The bits of the newest meta page, except padding, address, map size and the flags of the file.
fn meta_bits(page: usize) -> Vec<usize> {
    let fields = [0..8, 10..12, 16..24, 40..44, 46..152];
    let at = |byte: usize| (page * PAGE + byte) * 8;
    fields.into_iter().flat_map(|field| at(field.start)..at(field.end)).collect()
}

fn small_store() -> Store {
    let store = Store::new();
    store.churn(21, 12, 12_000);
    store
}

/// Tries some of these bits. Returns those whose flips were not detected.
fn unseen(flipped: &Flipped, bits: &[usize]) -> Vec<String> {
    let unseen = bits.iter().filter(|bit| !flipped.is_reported(**bit));
    unseen
        .map(|bit| format!("page {} byte {} bit {}", bit / 8 / PAGE, bit / 8 % PAGE, bit % 8))
        .collect()
}

fn some(bits: Vec<usize>, count: usize) -> Vec<usize> {
    let mut rng = fastrand::Rng::with_seed(8);
    rng.choose_multiple(bits, count)
}

/// Tries 3,000 flips. With `KEYLOOM_ALL_FLIPS` in the environment, tries every flip in a larger
/// file, which takes minutes.
#[test]
fn a_flip_in_a_structural_field_is_reported() {
    let (flipped, bits) = if std::env::var_os("KEYLOOM_ALL_FLIPS").is_some() {
        let store = Store::new();
        store.churn(22, 30, 20_000);
        store.put_all(counted(3_000, 9));
        let flipped = Flipped::new(store.compact());
        let bits = structural_bits(&flipped.bytes);
        (flipped, bits)
    } else {
        let flipped = Flipped::new(small_store().compact());
        let bits = some(structural_bits(&flipped.bytes), 3_000);
        (flipped, bits)
    };
    println!("{} bits of {} pages", bits.len(), flipped.bytes.len() / PAGE);
    assert_eq!(unseen(&flipped, &bits), [""; 0]);
}

#[test]
fn a_flip_in_the_free_list_is_reported() {
    let store = small_store();
    let bytes = std::fs::read(store.data()).unwrap();
    let meta = read_meta(store.data()).unwrap();
    assert_eq!(meta.free.depth, 1);
    let flipped = Flipped::new(bytes);
    let start = usize::try_from(meta.free.root.unwrap()).unwrap() * PAGE;
    let content = &flipped.bytes[start..start + PAGE];
    let lower = u16_at(content, 12);
    let mut bits: Vec<usize> = (start * 8..(start + 8) * 8).collect();
    bits.extend((start + 10) * 8..(start + lower) * 8);
    for offset in (16..lower).step_by(2).map(|at| u16_at(content, at)) {
        bits.extend(entry_bits(content, offset).map(|bit| start * 8 + bit));
        // The count and the page numbers, after a header and a key of 8 bytes each.
        let count = u16_at(content, offset + 16);
        let list = start + offset + 16;
        bits.extend(list * 8..(list + 8 + 8 * count) * 8);
    }
    let bits = some(bits, 2_000);
    assert_eq!(unseen(&flipped, &bits), [""; 0]);
}

#[test]
fn a_flip_anywhere_neither_panics_nor_hangs() {
    let store = small_store();
    let mut rng = fastrand::Rng::with_seed(5);
    for bytes in [std::fs::read(store.data()).unwrap(), store.compact()] {
        let flipped = Flipped::new(bytes);
        let told = (0..2_000)
            .filter(|_| flipped.is_reported(rng.usize(..flipped.bytes.len() * 8)))
            .count();
        println!("{told} of 2000 flips anywhere are told");
    }
}

#[test]
fn much_damage_at_once_neither_panics_nor_hangs() {
    let bytes = small_store().compact();
    let bits = structural_bits(&bytes);
    let mut rng = fastrand::Rng::with_seed(6);
    for _ in 0..500 {
        let mut damaged = bytes.clone();
        for _ in 0..rng.usize(1..40) {
            let bit = bits[rng.usize(..bits.len())];
            // Small numbers are more likely to be valid page numbers.
            damaged[bit / 8] = if rng.bool() { rng.u8(..) } else { rng.u8(..8) };
        }
        drop(verify(file_of(&damaged).path(), |_, _| ()));
    }
}
