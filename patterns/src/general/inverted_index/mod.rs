//! Inverted index: which records have these properties, and how many of each kind are there?

// Until all of it is used.
#![allow(dead_code)]

mod container;
mod words;

pub use container::CHUNK_IDS;
pub(crate) use container::Container;
pub(crate) use words::Words;

#[cfg(test)]
mod tests;
