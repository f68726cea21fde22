//! keyloom: data-modeling patterns on ordered key-value stores.

pub mod error;
pub mod key;
mod limits;
mod range;

pub use error::{BoxedError, Error, Result};
pub use key::{Desc, Element, List, Pack, Subspace, Unpack, pack, unpack};
pub use limits::{Limits, MAX_KEY_BYTES, check_key, check_value};
pub use range::{KeyBuf, KeyRange, Order, prefix_end, successor};
