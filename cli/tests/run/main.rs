//! The binary, on stores in temporary directories.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod backing_up;
mod benching;
mod changing;
mod checking;
mod coloring;
mod engines;
mod every_store;
#[cfg(feature = "explore")]
mod exploring;
mod exporting;
mod importing;
mod killing_copies;
mod looking;
mod planning;
#[cfg(feature = "explore")]
mod querying;
mod repairing;
mod requeuing;
mod resuming;
mod support;
mod upkeep;
mod verifying;
mod watching;
