//! The campaigns.

mod backups;
mod batches;
mod conformance;
mod damage;
mod dead_readers;
mod differential;
mod disk_full;
mod faults;
mod isolation;
mod kill;
mod power;
mod read_only;
mod rebuild;
mod syscalls;
mod task;
mod tests;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::Campaign;

/// All campaigns, in the order in which `ci` and `release` run them.
pub fn all() -> Vec<Box<dyn Campaign>> {
    vec![
        Box::new(conformance::Conformance),
        Box::new(differential::Differential),
        Box::new(rebuild::Rebuild),
        Box::new(faults::Faults),
        Box::new(isolation::Isolation),
        Box::new(kill::Kill),
        Box::new(power::Power),
        Box::new(backups::Backups),
        Box::new(read_only::ReadOnly),
        Box::new(syscalls::Syscalls),
        Box::new(disk_full::DiskFull),
        Box::new(dead_readers::DeadReaders),
        Box::new(damage::Damage),
        Box::new(tests::Tests),
        Box::new(tests::Servers),
    ]
}

pub use task::said;

/// The environment variable with the role of a process.
const ROLE: &str = "KEYLOOM_CAMPAIGN_ROLE";

/// Starts this program again in a role of a campaign.
fn process(role: &str) -> Result<Command> {
    // Started through /proc and not by name, because a long run may outlive the file of the
    // program.
    let running = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
    let program = if running.exists() { running } else { std::env::current_exe()? };
    let mut command = Command::new(program);
    command.env(ROLE, role);
    Ok(command)
}

/// Plays the role of this process, if a campaign started it; `None` if a user started it.
pub fn child() -> Option<Result<()>> {
    let role = std::env::var(ROLE).ok()?;
    Some(play(&role))
}

fn play(role: &str) -> Result<()> {
    match role {
        backups::ROLE => backups::play(),
        damage::ROLE => damage::play(),
        dead_readers::READER => dead_readers::read(),
        dead_readers::WRITER => dead_readers::write(),
        disk_full::ROLE => disk_full::play(),
        isolation::WRITER => isolation::writer(),
        kill::JUDGE => kill::judge(),
        kill::WRITER => kill::write(),
        power::JUDGE => power::judge(),
        power::RECORD => power::record(),
        read_only::ROLE => read_only::play(),
        syscalls::ROLE => syscalls::play(),
        _ => bail!("no campaign has a role {role:?}"),
    }
}
