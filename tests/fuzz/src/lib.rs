//! Hostile bytes: does any input make keyloom panic, hang, or break one of its laws?
//!
//! A [`Target`] is a function that takes any bytes, makes something of them, and panics when a law
//! does not hold. Three callers run it:
//!
//! | caller | inputs |
//! |---|---|
//! | `tests/fuzz/run.sh` | libFuzzer's, led by coverage, for as long as wanted |
//! | `cargo test -p keyloom-fuzz` | the seed corpus, and some thousand mutations of it |
//! | `cargo run -p keyloom-fuzz -- TARGET FILE...` | files, such as those that a crash left behind |
//!
//! A target compares with something that is written down independently: a `BTreeMap`, a predicate
//! on keys, the bytes that went in. The [`CONTROLS`] are targets that must fail, because what they
//! test is broken on purpose.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod addresses;
mod bitmaps;
mod columns;
mod continuations;
mod index_entries;
mod keys;
mod lmdb_files;
mod operations;
mod path_patterns;
mod posting_blocks;
mod queries;
mod ranges;
mod records;
mod trees;
mod values;

pub use lmdb_files::sparse;
pub use posting_blocks::stored_blocks;
pub use trees::tree_values;

/// A name, and what to do with any bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, on the command line and in the corpus.
    pub name: &'static str,
    /// Panics when a law does not hold.
    pub run: fn(&[u8]),
}

macro_rules! targets {
    ($($name:ident: $run:path,)+) => { [$(Target { name: stringify!($name), run: $run }),+] };
}

/// What must hold for any bytes.
pub const TARGETS: [Target; 14] = targets! {
    key_bytes: keys::bytes,
    key_order: keys::order,
    ranges: ranges::ranges,
    values: values::values,
    continuations: continuations::continuations,
    index_entries: index_entries::index_entries,
    operations: operations::operations,
    addresses: addresses::addresses,
    bitmaps: bitmaps::bitmaps,
    lmdb_files: lmdb_files::lmdb_files,
    path_patterns: path_patterns::path_patterns,
    trees: trees::trees,
    queries: queries::queries,
    posting_blocks: posting_blocks::posting_blocks,
};

/// What is broken on purpose: a caller that does not find it would find nothing else either.
pub const CONTROLS: [Target; 6] = targets! {
    control_addresses: addresses::with_an_error_that_looks_for_marks,
    control_key_bytes: keys::with_a_decoder_that_is_not_strict,
    control_ranges: ranges::with_a_prefix_that_ends_at_ff,
    control_operations: operations::with_an_index_that_forgets,
    control_path_patterns: path_patterns::with_a_scan_that_leaves_out,
    control_queries: queries::with_a_printer_that_escapes_nothing,
};

/// The target or control of this name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.into_iter().chain(CONTROLS).find(|target| target.name == name)
}
