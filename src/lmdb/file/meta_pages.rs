//! Both meta pages: the newest state of the store, and the check that the file is an LMDB file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::meta::{META_BYTES, PAGE_SIZES};
use super::page::{u16_at, u32_at, u64_at};
use super::{Fault, FileError, FileRule, Meta};

const MAGIC: u32 = 0xBEEF_C0DE;
const VERSION: u32 = 1;
const FLAGS_AT: usize = 10;
const MAGIC_AT: usize = 16;
/// The position of the magic number if page numbers have 32 bits.
const MAGIC_AT_32_BIT: usize = 12;
const META_PAGE: u16 = 8;

/// Both meta pages.
#[derive(Debug)]
pub(super) struct MetaPages {
    pub(super) newest: Meta,
    /// The faults of the meta pages. If one page is not sound, the other one is the newest.
    pub(super) faults: Vec<Fault>,
}

impl MetaPages {
    pub(super) fn read(file: &File) -> Result<Self, FileError> {
        let first = read_at(file, 0)?;
        let first_meta = match &first {
            Ok(bytes) => sound(bytes, 0),
            Err(short) => Err(short.fault(0)),
        };
        let second_meta = second(file, first_meta.as_ref().ok())?;
        let (first_meta, second_meta) = match (first_meta, second_meta) {
            (Ok(first), Ok(second)) if Self::newest(&first, &second).tree_fault().is_none() => {
                return Ok(Self::of_both(first, second));
            }
            (first, second) => (first.and_then(whole), second.and_then(whole)),
        };
        match (first_meta, second_meta) {
            (Ok(first), Ok(second)) => Ok(Self::of_both(first, second)),
            (Ok(newest), Err(fault)) | (Err(fault), Ok(newest)) => {
                Ok(Self { newest, faults: vec![fault] })
            }
            (Err(a), Err(b)) => {
                Err(not_lmdb(first).unwrap_or(FileError::NoSoundMeta { first: a, second: b }))
            }
        }
    }

    fn newest<'m>(first: &'m Meta, second: &'m Meta) -> &'m Meta {
        if first.transaction_id < second.transaction_id { second } else { first }
    }

    /// Chooses the newer page, whose trees the caller has checked. The trees of the older page need
    /// not be valid: if the write of a meta page fails, the engine restores the old last page and
    /// transaction in that page, but not the old trees.
    fn of_both(first: Meta, second: Meta) -> Self {
        let ids = [first.transaction_id, second.transaction_id];
        let newest = *Self::newest(&first, &second);
        let mut faults = Vec::new();
        if ids != [0, 0] && ids[0].abs_diff(ids[1]) != 1 {
            let detail = format!("{} on page 0 and {} on page 1", ids[0], ids[1]);
            faults.push(Fault::new(newest.page, FileRule::TransactionIds, detail));
        }
        Self { newest, faults }
    }
}

/// The error of a meta page that is past the end of the file.
#[derive(Debug)]
struct Short {
    file_bytes: u64,
}

impl Short {
    fn fault(&self, page: u64) -> Fault {
        Fault::new(page, FileRule::PastEnd, format!("the file has {} bytes", self.file_bytes))
    }
}

type MetaBytes = Result<[u8; META_BYTES], Short>;

/// Reads the meta page at the position `at`; returns [`Short`] if the file ends before the end of
/// the page.
fn read_at(file: &File, at: u64) -> io::Result<MetaBytes> {
    let mut bytes = [0; META_BYTES];
    match file.read_exact_at(&mut bytes, at) {
        Ok(()) => Ok(Ok(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Ok(Err(Short { file_bytes: file.metadata()?.len() }))
        }
        Err(error) => Err(error),
    }
}

/// Reads the second meta page. The page size in the first meta page determines its position. If the
/// first page is not sound, each possible page size is tried.
fn second(file: &File, first: Option<&Meta>) -> io::Result<Result<Meta, Fault>> {
    let at = |page_bytes: u32| -> io::Result<Result<Meta, Fault>> {
        Ok(match read_at(file, page_bytes.into())? {
            Ok(bytes) => sound(&bytes, 1).and_then(|meta| meta.with_pages_of(page_bytes)),
            Err(short) => Err(short.fault(1)),
        })
    };
    if let Some(first) = first {
        return at(first.page_bytes);
    }
    let [smallest, larger @ ..] = PAGE_SIZES;
    let mut found = at(smallest)?;
    for page_bytes in larger {
        if found.is_ok() {
            break;
        }
        // Reports the fault found with the most common page size, which is tried first.
        found = at(page_bytes)?.or(found);
    }
    Ok(found)
}

/// Returns the meta page if its trees are valid.
fn whole(meta: Meta) -> Result<Meta, Fault> {
    meta.tree_fault().map_or(Ok(meta), Err)
}

/// Parses the meta page in `bytes`. Checks every rule that concerns this page alone, except the
/// rules for its trees.
fn sound(bytes: &[u8; META_BYTES], page: u64) -> Result<Meta, Fault> {
    let fault = |(rule, detail): (FileRule, String)| Fault::new(page, rule, detail);
    let header = [
        ("number", u64_at(bytes, 0), page),
        ("flags", u16_at(bytes, FLAGS_AT).map(u64::from), META_PAGE.into()),
        ("magic", u32_at(bytes, MAGIC_AT).map(u64::from), MAGIC.into()),
        ("version", u32_at(bytes, MAGIC_AT + 4).map(u64::from), VERSION.into()),
    ];
    for (what, found, expected) in header {
        if found != Some(expected) {
            let found = found.unwrap_or_default();
            let detail = format!("{what} {found:#x} instead of {expected:#x}");
            return Err(fault((FileRule::Meta, detail)));
        }
    }
    let Some((main_pad, meta)) = Meta::parse(bytes, page) else {
        return Err(fault((FileRule::Meta, "it is too short".into())));
    };
    match meta.contradiction(main_pad) {
        Some(contradiction) => Err(fault(contradiction)),
        None => Ok(meta),
    }
}

/// The reason why a file without sound meta pages is not an LMDB file, rather than a damaged one.
fn not_lmdb(first: MetaBytes) -> Option<FileError> {
    let bytes = match first {
        Ok(bytes) => bytes,
        Err(Short { file_bytes }) => return Some(FileError::TooShort { file_bytes }),
    };
    let magic = u32_at(&bytes, MAGIC_AT)?;
    if magic == MAGIC {
        let found = u32_at(&bytes, MAGIC_AT + 4)?;
        let other = FileError::OtherVersion { found, supported: VERSION };
        return (found != VERSION).then_some(other);
    }
    if magic == MAGIC.swap_bytes() {
        return Some(FileError::OtherLayout { layout: "big-endian" });
    }
    let magic_32_bit = u32_at(&bytes, MAGIC_AT_32_BIT)?;
    if [MAGIC, MAGIC.swap_bytes()].contains(&magic_32_bit) {
        return Some(FileError::OtherLayout { layout: "32-bit" });
    }
    Some(FileError::NotLmdb { why: "its magic number is wrong" })
}
