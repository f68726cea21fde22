//! LMDB files: for any contents of a file, the checker ends without a panic, and its three results
//! agree.
//!
//! The engine itself does not run here, because it maps the file, and a damaged file would kill the
//! process.
//!
//! # Inputs
//!
//! An image of a file, without its zeros:
//!
//! ```text
//! | pages u8 | cut u8 | page u8 | offset u16 | length u8 | bytes | page u8 | ...
//! ```
//!
//! The file has this many pages, minus `cut` times 16 bytes. Numbers are little-endian. Later bytes
//! replace earlier ones, so a change of a sound image is a few bytes at its end.

use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;

use keyloom::lmdb::file::{
    FileError, FileReport, MAX_LISTED_FAULTS, QuickCheck, quick_check, read_meta, verify,
};

const PAGE_BYTES: usize = 4096;
/// The maximum number of pages of an image: enough for a tree of two levels and an overflow run.
const MOST_PAGES: u8 = 48;

/// Encodes the bytes of a file as an input of this target.
pub fn sparse(file: &[u8]) -> Vec<u8> {
    let pages = u8::try_from(file.len() / PAGE_BYTES).expect("a small file");
    assert!(pages <= MOST_PAGES && file.len().is_multiple_of(PAGE_BYTES), "{} bytes", file.len());
    let mut out = vec![pages, 0];
    for (page, content) in file.chunks(PAGE_BYTES).enumerate() {
        let mut at = 0;
        while let Some(start) = content[at..].iter().position(|byte| *byte != 0) {
            let start = at + start;
            let piece = &content[start..content.len().min(start + 255)];
            // A few zeros take less space than another header.
            let length = piece.windows(6).position(|zeros| zeros == [0; 6]).unwrap_or(piece.len());
            out.push(page as u8);
            out.extend((start as u16).to_le_bytes());
            out.push(length as u8);
            out.extend(&piece[..length]);
            at = start + length;
        }
    }
    assert_eq!(image(&out), file);
    out
}

/// Decodes any bytes to a file: the inverse of [`sparse`].
fn image(data: &[u8]) -> Vec<u8> {
    let [pages, cut, rest @ ..] = data else { return vec![] };
    let mut file = vec![0; usize::from(pages % (MOST_PAGES + 1)) * PAGE_BYTES];
    let mut rest = rest;
    while let [page, low, high, length, after @ ..] = rest {
        let (piece, after) = after.split_at(usize::from(*length).min(after.len()));
        let start =
            usize::from(*page) * PAGE_BYTES + usize::from(u16::from_le_bytes([*low, *high]));
        if let Some(place) = file.get_mut(start..start + piece.len()) {
            place.copy_from_slice(piece);
        }
        rest = after;
    }
    file.truncate(file.len().saturating_sub(usize::from(*cut) * 16));
    file
}

thread_local! {
    static FILE: RefCell<tempfile::NamedTempFile> =
        RefCell::new(tempfile::NamedTempFile::new().expect("a temporary file"));
}

pub(crate) fn lmdb_files(data: &[u8]) {
    let bytes = image(data);
    FILE.with_borrow_mut(|file| {
        write(file.as_file(), &bytes).expect("a temporary file can be written");
        check(file.path(), bytes.len() as u64);
    });
}

fn write(file: &File, bytes: &[u8]) -> std::io::Result<()> {
    file.set_len(0)?;
    file.set_len(bytes.len() as u64)?;
    for (page, content) in bytes.chunks(PAGE_BYTES).enumerate() {
        // Holes in the file stay holes.
        if content.iter().any(|byte| *byte != 0) {
            file.write_all_at(content, (page * PAGE_BYTES) as u64)?;
        }
    }
    Ok(())
}

fn check(path: &std::path::Path, file_bytes: u64) {
    let mut last = (0, 0);
    let walked = verify(path, |done, total| {
        assert!(last.0 <= done && done <= total, "{last:?}, then {done} of {total}");
        last = (done, total);
    });
    match (walked, quick_check(path), read_meta(path)) {
        (Ok(report), Ok(quick), Ok(meta)) => {
            assert_eq!(report.meta, meta);
            agree(&report, &quick, file_bytes);
            assert!(last.0 == last.1 || !report.is_sound(), "{last:?} at the end");
        }
        (Err(a), Err(b), Err(c)) => {
            assert_eq!([a.to_string(), b.to_string()], [b.to_string(), c.to_string()]);
            assert!(!matches!(a, FileError::Io(_)), "{a}");
        }
        answers => panic!("{answers:?}"),
    }
}

fn agree(report: &FileReport, quick: &QuickCheck, file_bytes: u64) {
    assert_eq!(report.file_bytes, file_bytes);
    assert_eq!(report.faults.len() as u64, report.fault_count.min(MAX_LISTED_FAULTS as u64));
    for fault in &report.faults {
        assert!(!fault.to_string().is_empty());
    }
    let pages_in_file = file_bytes / u64::from(report.meta.page_bytes);
    let in_trees = report.branch_pages + report.leaf_pages + report.overflow_pages;
    assert!(in_trees <= pages_in_file, "{report:?}");
    match quick {
        QuickCheck::Damaged(fault) => assert!(report.faults.contains(fault), "{fault} {report:?}"),
        QuickCheck::Complete(meta) => assert_eq!(*meta, report.meta),
        QuickCheck::Short { meta, file_bytes: found, expected_bytes } => {
            assert_eq!((*meta, *found), (report.meta, file_bytes));
            assert!(found < expected_bytes);
        }
    }
    if report.is_sound() {
        assert_eq!(
            in_trees + report.free_pages + 2,
            report.meta.last_page + 1,
            "every page is accounted for"
        );
        assert!(report.free_pages_past_end <= report.free_pages);
        let entries: u64 = report.databases.iter().map(|(_, tree)| tree.entries).sum();
        assert!(entries <= file_bytes);
    }
}
