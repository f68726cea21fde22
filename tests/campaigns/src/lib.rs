//! Campaigns: attacks on the promises of keyloom.
//!
//! ```sh
//! cargo campaign list                        # what there is, and how much each does
//! cargo campaign kill --count 2000           # one of them; or --seconds 60
//! cargo campaign kill --seed 7 --workload cities
//! cargo campaign ci                          # the small form of all
//! cargo campaign promises                    # the table of promises, from the result files
//! ```
//!
//! A [`Workload`] consists of random operations on a pattern, a model of their expected results,
//! and the pattern's own `check`. One line in [`workloads::all`] adds a pattern to every
//! [`Campaign`]. A campaign also attacks targets that are broken on purpose, its [`Control`]s, and
//! fails if it does not notice the flaw.
//!
//! Everything random comes from `--seed`. A failure prints the seed together with the shortest
//! sequence of transactions that still fails.

// This is a test program, so a violated assumption may end it.
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
