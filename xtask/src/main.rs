//! The maintenance commands of keyloom's repository: `cargo xtask ci`, `compare`, `pages`, `plots`
//! and `words`.

mod ci;
mod compare;
#[cfg(test)]
mod contributing;
#[cfg(test)]
mod filters;
mod pages;
mod plots;
#[cfg(test)]
mod tests_of_errors;
#[cfg(test)]
mod tests_of_modules;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};

const USAGE: &str = "\
usage: cargo xtask ci --quick     fmt, words, clippy, the default tests
       cargo xtask ci --full      all steps that must pass before a change lands
       cargo xtask ci --nightly   what takes long to build and seldom fails alone
       cargo xtask ci --list      the steps and their commands
       cargo xtask ci NAME...     these steps
       cargo xtask compare        all comparisons with other libraries that need no server, with a
                                  summary; --quick for few rounds, NAME... for some of them
       cargo xtask pages          the programs of the README and the book compile as copied;
                                  --run runs them, too
       cargo xtask plots          draws the plots of the book from benches/compare/measured
       cargo xtask words          the wording of comments and chapters, and the names of tests
       cargo xtask words --list   the same, with every finding
       cargo xtask words --lower  writes the counts of today into xtask/words_allowed.txt";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Result<()> {
    let root = root()?;
    match arguments {
        ["ci", "--list"] => {
            ci::list();
            Ok(())
        }
        ["ci", chosen @ ..] if !chosen.is_empty() => ci::run(&root, chosen),
        ["compare", chosen @ ..] => compare::run(&root, chosen),
        ["pages"] => pages::run(&root, pages::Do::Check),
        ["pages", "--run"] => pages::run(&root, pages::Do::Run),
        ["plots"] => plots::write(&root),
        ["words"] => words::check(&root, words::Print::Summary),
        ["words", "--list"] => words::check(&root, words::Print::Findings),
        ["words", "--lower"] => words::lower(&root),
        _ => anyhow::bail!("{USAGE}"),
    }
}

/// The root of the repository.
fn root() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    Ok(root.context("the package xtask lies at the root of the repository")?.to_owned())
}
