//! What a process of a campaign's own is to do.

use std::process::Command;

use anyhow::{Context as _, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Mix;

const TASK: &str = "KEYLOOM_CAMPAIGN_TASK";

/// Starts this program once more, in a role and with a task.
pub(super) fn process(role: &str, task: &impl Serialize) -> Result<Command> {
    let mut command = super::process(role)?;
    command.env(TASK, serde_json::to_string(task)?);
    Ok(command)
}

/// The task of this process.
pub(super) fn own<T: DeserializeOwned>() -> Result<T> {
    let text = std::env::var(TASK).context("this process has no task")?;
    Ok(serde_json::from_str(&text)?)
}

/// The one workload that was asked for, if it was one, so that a process can make the same mix.
pub(super) fn workload(mix: &Mix) -> Option<String> {
    match &mix.names()[..] {
        [one] => Some((*one).into()),
        _ => None,
    }
}
