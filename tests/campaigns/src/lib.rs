//! Campaigns: what keyloom promises, attacked.
//!
//! ```sh
//! cargo campaign list                        # what there is, and how much each does
//! cargo campaign kill --count 2000           # one of them; or --seconds 60
//! cargo campaign kill --seed 7 --workload cities
//! cargo campaign ci                          # the small form of all
//! cargo campaign promises                    # the table of promises, from the result files
//! ```
//!
//! A [`Workload`] is random operations on a pattern, a model of what they should have come to, and
//! the pattern's own `check`. A pattern joins every [`Campaign`] by one line in [`workloads::all`].
//! A campaign also runs against something that is broken on purpose, its [`Control`], and fails
//! where it does not notice.
//!
//! Everything random comes from `--seed`, which a failure prints together with the shortest
//! sequence of transactions that still fails.

// A program of tests: what does not hold may end it.
#![allow(clippy::indexing_slicing)]

pub mod campaign;
pub mod campaigns;
pub mod definitions;
pub mod mix;
pub mod promises;
pub mod record;
pub mod shrink;
pub mod workload;
pub mod workloads;

pub use campaign::{Budget, Campaign, Context, Control, Facts, Failure, Tally};
pub use mix::{Mix, Oracle};
pub use workload::Workload;
