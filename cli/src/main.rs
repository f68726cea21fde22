//! keyloom on the command line: what does a store hold?

mod address;
mod backup;
mod batches;
mod bench;
mod block;
mod catalog;
mod change;
mod check;
mod copy;
mod diff;
mod digest;
mod du;
#[cfg(feature = "explore")]
mod edges;
#[cfg(feature = "explore")]
mod explore;
mod export;
mod failure;
mod get;
mod import;
mod indexed;
mod lines;
mod locks;
mod ls;
mod manual;
mod measure;
#[cfg(test)]
mod measure_tests;
mod migrate;
mod mirror;
mod models;
mod ndjson;
mod output;
mod pages;
mod payload;
mod plan;
#[cfg(feature = "explore")]
mod points;
mod position;
mod progress;
mod query;
mod queues;
mod repair;
mod requeue;
mod scan;
mod selection;
mod shown;
mod stats;
mod style;
mod target;
#[cfg(feature = "explore")]
mod texts;
mod tree;
mod tuple;
#[cfg(test)]
mod tuple_tests;
mod value;
mod verify;
mod watch;
mod word;
#[cfg(feature = "explore")]
mod words;
mod work;
mod write;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::{Failure, Outcome};
use output::{Output, note_fault};

const AFTER_HELP: &str = "\
An address is lmdb:DIRECTORY, redb:FILE, fjall:DIRECTORY, postgres://… or etcd://…; the directory of
an LMDB store needs no scheme. No command changes a store without --write.

A name that several schemas have is written SCHEMA/NAME, as in shop/orders.

Keys are tuples: '(\"orders\", 7, _, 2026..)' has any third element, and a fourth from 2026 on. The
records of a table begin with its subspace, which ls shows: '(-1, 7)'.

Status 1: a key is missing, stores differ, there are faults or there is work. Status 2: an error.

  keyloom ls shop                               what does the store hold?
  keyloom scan shop people -n 5                 the first records of a table
  keyloom query shop people.by_town '(\"Rome\",)'
  keyloom explore shop                          the same as a web page";

/// Looks into ordered key-value stores: lists, queries, checks, repairs, changes, copies, backs up,
/// exports, compares, watches and measures them.
#[derive(Debug, Parser)]
#[command(name = "keyloom", version, arg_required_else_help = true, after_help = AFTER_HELP)]
struct Cli {
    /// Prints one JSON object per line, except for man and completions
    #[arg(long, global = true)]
    json: bool,
    /// Colors of names, numbers and faults
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    color: style::When,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Ls(ls::Ls),
    Scan(scan::Scan),
    Query(query::Query),
    Get(get::Get),
    Put(write::Put),
    Rm(write::Rm),
    Stats(stats::Stats),
    Du(du::Du),
    Copy(copy::Copy),
    Backup(backup::Backup),
    Diff(diff::Diff),
    Export(export::Export),
    Import(import::Import),
    Check(check::Check),
    Repair(repair::Repair),
    Verify(verify::Verify),
    Plan(plan::Plan),
    Migrate(migrate::Migrate),
    Locks(locks::Locks),
    Queues(queues::Queues),
    Watch(watch::Watch),
    Bench(bench::Bench),
    #[cfg(feature = "explore")]
    Explore(explore::Explore),
    Completions(manual::Completions),
    Man(manual::Man),
}

impl Command {
    fn run(&self, out: &mut Output) -> failure::Result<Outcome> {
        match self {
            Self::Ls(command) => command.run(out),
            Self::Scan(command) => command.run(out),
            Self::Query(command) => command.run(out),
            Self::Get(command) => command.run(out),
            Self::Put(command) => command.run(out),
            Self::Rm(command) => command.run(out),
            Self::Stats(command) => command.run(out),
            Self::Du(command) => command.run(out),
            Self::Copy(command) => command.run(out),
            Self::Backup(command) => command.run(out),
            Self::Diff(command) => command.run(out),
            Self::Export(command) => command.run(out),
            Self::Import(command) => command.run(out),
            Self::Check(command) => command.run(out),
            Self::Repair(command) => command.run(out),
            Self::Verify(command) => command.run(out),
            Self::Plan(command) => command.run(out),
            Self::Migrate(command) => command.run(out),
            Self::Locks(command) => command.run(out),
            Self::Queues(command) => command.run(out),
            Self::Watch(command) => command.run(out),
            Self::Bench(command) => command.run(out),
            #[cfg(feature = "explore")]
            Self::Explore(command) => command.run(out),
            Self::Completions(command) => command.run(out),
            Self::Man(command) => command.run(out),
        }
    }

    /// The addresses of the stores of the command, as error messages show them.
    fn place(&self) -> String {
        match self {
            Self::Ls(command) => address::shown(&command.address),
            Self::Scan(command) => address::shown(&command.address),
            Self::Query(command) => address::shown(&command.address),
            Self::Get(command) => address::shown(&command.address),
            Self::Put(command) => address::shown(&command.address),
            Self::Rm(command) => address::shown(&command.address),
            Self::Stats(command) => address::shown(&command.address),
            Self::Du(command) => address::shown(&command.address),
            Self::Copy(command) => both(&command.from, &command.to),
            Self::Backup(command) => address::shown(&command.address),
            Self::Diff(command) => both(&command.a, &command.b),
            Self::Export(command) => address::shown(&command.address),
            Self::Import(command) => address::shown(&command.address),
            Self::Check(command) => address::shown(&command.address),
            Self::Repair(command) => address::shown(&command.address),
            Self::Verify(command) => address::shown(&command.address),
            Self::Plan(command) => address::shown(&command.address),
            Self::Migrate(command) => address::shown(&command.address),
            Self::Locks(command) => address::shown(&command.address),
            Self::Queues(command) => address::shown(&command.address),
            Self::Watch(command) => address::shown(&command.address),
            Self::Bench(command) => address::shown(&command.address),
            #[cfg(feature = "explore")]
            Self::Explore(command) => address::shown(&command.address),
            Self::Completions(_) | Self::Man(_) => "keyloom".to_owned(),
        }
    }
}

fn both(from: &str, to: &str) -> String {
    format!("{} and {}", address::shown(from), address::shown(to))
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    style::init(cli.color, cli.json);
    let mut out = Output::new(cli.json);
    let run = cli.command.run(&mut out);
    // Lines before an error are part of the output.
    let written = out.finish();
    match (run, written) {
        // The result of a comparison does not depend on who reads it.
        (Ok(outcome), Ok(()) | Err(Failure::Closed)) => outcome.into(),
        (Err(Failure::Closed), _) => ExitCode::SUCCESS,
        (Err(failure), _) | (Ok(_), Err(failure)) => {
            note_fault(&format!("{}: {failure}", cli.command.place()));
            ExitCode::from(2)
        }
    }
}
