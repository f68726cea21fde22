//! Tests of documents, one module per subject.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod collapse;
mod error_names;
mod files;
mod flat;
#[cfg(feature = "json")]
mod json;
mod lookup;
mod matches;
mod nested;
mod parent_child;
