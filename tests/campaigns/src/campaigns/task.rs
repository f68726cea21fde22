//! Child processes of a campaign, and threads that share its work.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child as Process, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use serde::Serialize;
use serde::de::DeserializeOwned;

const TASK: &str = "KEYLOOM_CAMPAIGN_TASK";

/// Starts this program again, with a role and a task.
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

/// A process that exchanges lines with this one. It is killed when its handle is dropped.
pub(super) struct Child {
    process: Process,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Child {
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = started.context("starting a process")?;
        let input = process.stdin.take().context("the process has no input")?;
        let output = process.stdout.take().context("the process has no output")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.try_for_each(|line| sender.send(line))
        });
        Ok(Self { process, input, lines })
    }

    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(super) fn report(&mut self, line: &str) -> Result<()> {
        self.input.write_all(format!("{line}\n").as_bytes()).context("telling a process")
    }

    /// The next line. An error means that the process has ended, or was silent for the whole
    /// time-out.
    pub(super) fn hear(&self, patience: Duration) -> Result<String, RecvTimeoutError> {
        self.lines.recv_timeout(patience)
    }

    /// Waits until the process ends.
    pub(super) fn wait(&mut self) -> Result<ExitStatus> {
        Ok(self.process.wait()?)
    }

    /// Kills the process.
    pub(super) fn kill(&mut self) -> Result<ExitStatus> {
        // An error means that the process has already exited.
        drop(self.process.kill());
        self.wait()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        drop(self.kill());
    }
}

/// Runs `work` on as many threads as there are processors, with the number of each thread.
pub(super) fn side_by_side(work: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> =
            (0..workers).map(|number| scope.spawn(move || work(number))).collect();
        running.into_iter().try_for_each(|worker| {
            worker.join().map_err(|panic| anyhow!("a thread panicked: {}", said(&*panic)))?
        })
    })
}

/// The message of a panic.
pub fn said(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("nothing")
}
