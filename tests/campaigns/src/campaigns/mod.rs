//! The campaigns.

mod rebuild;

use anyhow::Result;

use crate::Campaign;

/// All campaigns, in the order in which `ci` and `release` run them.
pub fn all() -> Vec<Box<dyn Campaign>> {
    vec![Box::new(rebuild::Rebuild)]
}

/// Runs what this process was started for by a campaign; `None` when it was started by a user.
pub fn child() -> Option<Result<()>> {
    None
}
