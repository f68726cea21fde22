//! Hostile bytes: does any input make keyloom panic, hang, or break one of its laws?
//!
//! A [`Target`] is a function that takes any bytes, interprets them, and panics if a law is
//! violated. Three callers run it:
//!
//! | caller | inputs |
//! |---|---|
//! | `tests/fuzz/run.sh` | libFuzzer's, guided by coverage, for any length of time |
//! | `cargo test -p keyloom-fuzz` | the seed corpus, and some thousand mutations of it |
//! | `cargo run -p keyloom-fuzz -- TARGET FILE...` | files, such as those left by a crash |
//!
//! A target compares with an independent definition: a `BTreeMap`, a predicate on keys, or the
//! original bytes. The [`CONTROLS`] are targets that must fail, because the code that they test is
//! broken on purpose.
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

/// A name, and a function of any bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name, on the command line and in the corpus.
    pub name: &'static str,
    /// Panics if a law is violated.
    pub run: fn(&[u8]),
}

macro_rules! targets {
    ($($name:ident: $run:path,)+) => { [$(Target { name: stringify!($name), run: $run }),+] };
}

/// The laws that must hold for any bytes.
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

/// Targets that are broken on purpose: a caller that does not find the flaw would find no other
/// either.
pub const CONTROLS: [Target; 6] = targets! {
    control_addresses: addresses::with_an_error_that_looks_for_marks,
    control_key_bytes: keys::with_a_decoder_that_is_not_strict,
    control_ranges: ranges::with_a_prefix_that_ends_at_ff,
    control_operations: operations::with_an_index_that_forgets,
    control_path_patterns: path_patterns::with_a_scan_that_leaves_out,
    control_queries: queries::with_a_printer_that_escapes_nothing,
};

/// The target or control with this name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.into_iter().chain(CONTROLS).find(|target| target.name == name)
}
