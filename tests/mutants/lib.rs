//! The encoding of keys and the range algebra, and nothing else of the library: what
//! tests/mutants.sh mutates. It is built in two seconds, the library in a minute.

pub mod key;
mod range;

pub use key::{Desc, Element, List, Pack, Subspace, Unpack, pack, unpack};
pub use range::{KeyBounds, KeyBuf, KeyRange, Order, prefix_end, successor};

/// As in `limits.rs`.
pub const MAX_KEY_BYTES: usize = 511;
