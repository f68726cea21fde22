//! The judging processes, as handled by the campaign.

use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::job::Job;
use super::judge::{self, Request, Verdict};
use crate::campaigns::task::Child;

/// A judging process, which is restarted after an image has killed it.
pub struct Worker {
    job: Job,
    running: Option<Child>,
}

/// The time-out of an image, long enough for any machine under any load.
const PATIENCE: Duration = Duration::from_secs(120);

impl Worker {
    pub fn new(job: &Job) -> Self {
        Self { job: job.clone(), running: None }
    }

    /// Judges one image.
    pub fn judge(&mut self, request: &Request) -> Result<Verdict> {
        self.ask(request)?;
        self.answer()
    }

    /// Judges the images with these numbers, until `hear` returns `false`.
    pub fn judge_planned(
        &mut self,
        from: usize,
        to: usize,
        mut hear: impl FnMut(usize, Verdict) -> bool,
    ) -> Result<()> {
        let mut is_asked = false;
        for number in from..to {
            if !is_asked || self.running.is_none() {
                // After an image that killed a process, continue with the next one.
                self.ask(&Request::Planned { from: number, to })?;
                is_asked = true;
            }
            let verdict = self.answer()?;
            if !hear(number, verdict) {
                self.running = None;
                break;
            }
        }
        Ok(())
    }

    fn ask(&mut self, request: &Request) -> Result<()> {
        let running = match &mut self.running {
            Some(running) => running,
            none => none.insert(start(&self.job)?),
        };
        running.report(&serde_json::to_string(request)?)
    }

    /// The next verdict; the death of the process also counts as a verdict.
    fn answer(&mut self) -> Result<Verdict> {
        let running = self.running.as_mut().context("nobody was asked")?;
        match running.hear(PATIENCE) {
            Ok(line) => Ok(serde_json::from_str(&line)?),
            Err(RecvTimeoutError::Timeout) => {
                self.running = None;
                let fault = Some(format!("reading it took more than {PATIENCE:?}"));
                Ok(Verdict { fault, ..Verdict::default() })
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = running.wait()?;
                self.running = None;
                if status.code() == Some(1) {
                    // The process exited and has printed the reason.
                    bail!("a judging process could not go on");
                }
                let fault = Some(format!("opening or reading it kills the program: {status}"));
                Ok(Verdict { fault, ..Verdict::default() })
            }
        }
    }
}

fn start(job: &Job) -> Result<Child> {
    let program = super::super::process(judge::ROLE)?;
    // A process that is killed by an image must not leave a core file.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -c 0; exec \"$@\"", "sh"]).arg(program.get_program());
    command.arg(serde_json::to_string(job)?);
    for (name, value) in program.get_envs() {
        value.map(|value| command.env(name, value));
    }
    Child::start(&mut command)
}
