//! Processes are killed with SIGKILL while they rename a directory under a lock.
//!
//! `KEYLOOM_LOCK_KILLS` is the number of processes killed at each commit point, 5 by default. So
//! many are killed exactly between two commits, and as many again at a random time after the point.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod campaign;
mod child;
mod late;
mod rename;
