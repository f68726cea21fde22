//! The campaigns.

mod kill;
mod rebuild;

use std::process::Command;

use anyhow::{Result, bail};

use crate::Campaign;

/// All campaigns, in the order in which `ci` and `release` run them.
pub fn all() -> Vec<Box<dyn Campaign>> {
    vec![Box::new(rebuild::Rebuild), Box::new(kill::Kill)]
}

/// Says to a process what it was started for.
const ROLE: &str = "KEYLOOM_CAMPAIGN_ROLE";

/// Starts this program once more, in a role of a campaign's own.
fn process(role: &str) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env(ROLE, role);
    Ok(command)
}

/// Plays the role that this process was started for by a campaign; `None` when a user started it.
pub fn child() -> Option<Result<()>> {
    let role = std::env::var(ROLE).ok()?;
    Some(play(&role))
}

fn play(role: &str) -> Result<()> {
    match role {
        kill::WRITER => kill::write(),
        kill::JUDGE => kill::judge(),
        _ => bail!("no campaign has a role {role:?}"),
    }
}
