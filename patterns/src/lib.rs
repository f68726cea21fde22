//! The patterns of keyloom: how relations, indexes and what else a program needs are laid out on
//! ordered keys. One module per pattern, under the name that the catalogue gives it.
//!
//! Every pattern is a *value* that describes where its data lie and what its functions are. It holds
//! no store and no transaction: reads take `&impl Reader`, writes take `&mut impl Writer`. So any
//! number of patterns work in one atomic transaction, on any store.
//!
//! ```
//! use keyloom::{Memory, Order, Store, Subspace};
//! use keyloom_patterns::{Index, Table, entry};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! struct City { name: String, country: String, population: u64 }
//!
//! let space = Subspace::new("geo");
//! let by_name = Index::new(&space.child("by_name"), |_id, city: &City| entry((&city.country, &city.name)));
//! let cities = Table::<u32, City>::new(&space.child("cities")).with(&by_name);
//!
//! let store = Memory::new();
//! let paris = City { name: "Paris".into(), country: "FR".into(), population: 2_138_551 };
//! store.transact(|txn| cities.put(txn, &2_988_507, &paris))?;
//!
//! let snapshot = store.snapshot()?;
//! for found in by_name.range(&snapshot, "FR", Order::Ascending)? {
//!     let id = found?.record_key()?;
//!     assert_eq!(cities.get(&snapshot, &id)?.as_ref(), Some(&paris));
//! }
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! | module | the question it answers |
//! |---|---|
//! | [`table`] | how do typed records live in a store, with everything derived from them kept in step? |
//! | [`derived`] | how is derived data maintained, checked and repaired, whatever it is? |
//! | [`general::aggregation`] | how is data counted, summed and ranked per group, on the fly or kept up to date? |
//! | [`general::composite_key_index`] | how are records found by the leading parts of several fields? |

mod batch;
mod continuation;
pub mod derived;
mod explain;
pub mod general;
mod select;
mod sorted_writes;
pub mod table;

pub use batch::BatchSize;
pub use continuation::Continuation;
pub use derived::{Derived, DerivedEntries, Inconsistency};
pub use explain::Explain;
pub use general::aggregation::Grouping;
pub use general::composite_key_index::{Index, IndexEntries, entry};
pub use select::{Select, StartingWith, Within, starting_with, within};
pub use table::{RecordKey, RecordPage, Table};
