//! The process that checks what is left. It is separate from the campaign's process, so that a
//! store that crashes its reader is a finding and does not end the campaign.

use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;

use anyhow::{Context as _, Result};
use keyloom::{AnyStore, Lmdb, Store};
use serde::{Deserialize, Serialize};

use super::PATIENCE;
use super::job::{Engine, Habit, Job, Position};
use super::work;
use crate::campaigns::process;
use crate::campaigns::task::Child;
use crate::{Mix, Oracle};

/// The object of a verdict.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum What {
    /// A store with transactions of the history.
    History,
    /// The file of a store without a writer. A page that is both used and free, or used twice, may
    /// not show in the contents yet.
    File,
    /// The backup of a store with this many transactions.
    Copy(u64),
    /// A load.
    Load,
    /// A repair with its reported position, or `None` if it is finished. The flag says whether
    /// records were changed meanwhile, so that the expected records are unknown.
    Repair { reported: Option<Position>, is_disturbed: bool },
}

#[derive(Serialize, Deserialize)]
struct Question {
    job: Job,
    /// Whether the store stays open while writers come and go.
    keeps: bool,
    what: What,
}

/// The contents of a store.
#[derive(Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// The number of transactions, or of items.
    pub progress: u64,
    /// The number of them in a snapshot before the next write. If the store stayed open, a commit
    /// that was interrupted at its very end may become visible only after the next transaction has
    /// begun.
    pub seen: u64,
    /// The faults.
    pub wrong: Vec<String>,
}

/// The handle of the judge process, which ends when this is dropped.
pub struct Judge(Child);

impl Judge {
    pub fn start() -> Result<Self> {
        // An interrupt of the campaign must not reach this process, whose end would be a finding.
        let started = Child::start(process(super::JUDGE)?.process_group(0));
        Ok(Self(started.context("the judge")?))
    }

    /// Requests a verdict. A judge that dies or hangs because of the request is a finding.
    pub fn ask(&mut self, job: &Job, keeps: bool, what: What) -> Result<Verdict> {
        let question = serde_json::to_string(&Question { job: job.clone(), keeps, what })?;
        // If the judge is already dead, there is no answer either.
        drop(self.0.report(&question));
        let answer = self.0.hear(PATIENCE);
        if let Ok(answer) = answer {
            return serde_json::from_str(&answer).context("the judge's answer");
        }
        let hangs = answer == Err(RecvTimeoutError::Timeout);
        let status = self.0.kill()?;
        *self = Self::start()?;
        let wrong = vec![match hangs {
            true => "who opens the store hangs".into(),
            false => format!("who opens the store dies: {status}"),
        }];
        Ok(Verdict { progress: 0, seen: 0, wrong })
    }
}

/// Answers requests until standard input ends.
pub fn judge() -> Result<()> {
    let mut bench = Bench::default();
    for question in std::io::stdin().lock().lines() {
        let question: Question = serde_json::from_str(&question?)?;
        let verdict = bench.judge(&question).unwrap_or_else(|error| Verdict {
            progress: 0,
            seen: 0,
            wrong: vec![format!("the store cannot be read: {error:#}")],
        });
        writeln!(std::io::stdout(), "{}", serde_json::to_string(&verdict)?)?;
    }
    Ok(())
}

/// The state of a judge between two requests.
#[derive(Default)]
struct Bench {
    oracle: Option<(PathBuf, Oracle)>,
    open: Option<(PathBuf, AnyStore)>,
}

/// No store can be further ahead of the last known progress.
const MOST_AHEAD: u64 = 1_000_000;

impl Bench {
    fn judge(&mut self, question: &Question) -> Result<Verdict> {
        let job = &question.job;
        if let What::Copy(progress) = question.what {
            return judge_copy(job, progress);
        }
        if let What::File = question.what {
            // The file check does not run while the store is open here.
            self.open = None;
            let wrong = faults_of_file(job)?;
            return Ok(Verdict { progress: 0, seen: 0, wrong });
        }
        let store = self.store(job, question.keeps)?;
        match &question.what {
            What::Load => {
                let seen = work::loaded(&store.snapshot()?)?;
                let (progress, wrong) = work::judge_load(job, &store.begin()?)?;
                Ok(Verdict { progress, seen, wrong })
            }
            What::Repair { reported, is_disturbed } => {
                let wrong =
                    work::judge_repair(job, &store.begin()?, reported.as_ref(), *is_disturbed)?;
                Ok(Verdict { progress: 0, seen: 0, wrong })
            }
            What::History | What::File | What::Copy(_) => self.judge_history(job, &store),
        }
    }

    fn store(&mut self, job: &Job, keeps: bool) -> Result<AnyStore> {
        if let Some((_, store)) = self.open.as_ref().filter(|(path, _)| *path == job.store) {
            return Ok(store.clone());
        }
        // The previous store is closed first.
        self.open = None;
        // Opened by its own name, whatever a broken writer does.
        let store = Job { habit: Habit::Sound, ..job.clone() }.open()?;
        self.open = keeps.then(|| (job.store.clone(), store.clone()));
        Ok(store)
    }

    fn judge_history(&mut self, job: &Job, store: &AnyStore) -> Result<Verdict> {
        let seen = Mix::progress(&store.snapshot()?)?;
        let mut txn = store.begin()?;
        let progress = Mix::progress(&txn)?;
        let before = self.oracle.take().filter(|(path, oracle)| {
            *path == job.store && (oracle.done()..=oracle.done() + MOST_AHEAD).contains(&progress)
        });
        let mut oracle = match before {
            Some((_, oracle)) => oracle,
            None => job.mix()?.oracle(),
        };
        anyhow::ensure!(
            progress <= oracle.done() + MOST_AHEAD,
            "{progress} transactions are there"
        );
        oracle.advance(job.history, progress);
        let wrong = oracle.judge_within(&mut txn)?;
        self.oracle = Some((job.store.clone(), oracle));
        Ok(Verdict { progress, seen, wrong })
    }
}

fn faults_of_file(job: &Job) -> Result<Vec<String>> {
    if job.engine == Engine::Redb {
        let is_whole = redb::Database::open(job.redb())?.check_integrity()?;
        return Ok(if is_whole { Vec::new() } else { vec!["the file is repaired twice".into()] });
    }
    if job.engine == Engine::Fjall {
        // fjall checks a file when it is read, as the data is by the judge.
        return Ok(Vec::new());
    }
    let report = Lmdb::verify(&job.store, |_, _| ())?;
    Ok(report.faults.iter().map(|fault| format!("the file: {fault}")).collect())
}

fn judge_copy(job: &Job, progress: u64) -> Result<Verdict> {
    let path = job.copy();
    let report = Lmdb::verify(&path, |_, _| ())?;
    let mut wrong: Vec<String> =
        report.faults.iter().map(|fault| format!("the backup: {fault}")).collect();
    wrong.extend(judge_whole_copy(job, &path, progress)?);
    Ok(Verdict { progress, seen: progress, wrong })
}

fn judge_whole_copy(job: &Job, path: &Path, progress: u64) -> Result<Vec<String>> {
    let mut oracle = job.mix()?.oracle();
    oracle.advance(job.history, progress);
    let store = Lmdb::open(path)?;
    Ok(oracle.judge(&store).into_iter().map(|what| format!("the backup: {what}")).collect())
}
