//! Only the encoding of keys and the range algebra, the code that tests/mutants.sh mutates. This
//! crate builds in two seconds, the whole library in a minute.

pub mod key;
mod range;

pub use key::{Desc, Element, List, Pack, Subspace, Unpack, pack, unpack};
pub use range::{KeyBuf, KeyRange, Order, prefix_end, successor};

/// The same value as in `limits.rs`.
pub const MAX_KEY_BYTES: usize = 511;
