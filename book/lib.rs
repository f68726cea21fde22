//! The keyloom book as a crate: every chapter is a module whose documentation is the chapter, so
//! that each Rust block of the book runs as a doctest.
//!
//! ```text
//! cargo test -p keyloom-book     runs the book
//! mdbook build book              renders it
//! ```
//!
//! `build.rs` generates the modules from `SUMMARY.md`. A test checks that every chapter is listed
//! there and that every Rust block runs.
// The first program of a chapter is shown with its `main`, so that it runs when it is copied.
#![allow(clippy::needless_doctest_main)]

pub mod geo;
pub mod places;
pub mod posts;
pub mod shop;

include!(concat!(env!("OUT_DIR"), "/chapters.rs"));

// The README is not a chapter, but its blocks run too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub mod readme {}

#[cfg(test)]
mod costs;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod shop_oracle;
