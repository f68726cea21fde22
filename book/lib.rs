//! The keyloom book as a crate: every chapter is a module whose documentation is the chapter, so
//! that each Rust block of the book runs as a doctest.
//!
//! ```text
//! cargo test -p keyloom-book     runs the book
//! mdbook build book              renders it
//! ```
//!
//! A test holds the chapters to their rules: each is listed in `SUMMARY.md`, from which
//! `build.rs` makes the modules, and no
//! Rust block is kept from running.

pub mod geo;
pub mod places;

include!(concat!(env!("OUT_DIR"), "/chapters.rs"));

// The README is not a chapter, but its blocks run all the same.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub mod readme {}

#[cfg(test)]
mod rules;
