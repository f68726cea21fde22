//! `keyloom completions` and `keyloom man`: what a package installs beside the command.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::Cli;
use crate::failure::{Outcome, Result};
use crate::output::Output;

/// Prints the completions for a shell.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

impl Completions {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "keyloom", &mut text);
        out.bytes(&text)?;
        Ok(Outcome::Fine)
    }
}

/// Prints the manual page, for `man -l -`.
#[derive(Debug, Args)]
pub struct Man {
    /// The page of this command [default: the page of all]
    pub command: Option<String>,
}

impl Man {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let mut all = Cli::command();
        all.build();
        let page = match &self.command {
            None => all,
            Some(name) => all.find_subcommand(name).cloned().ok_or_else(|| {
                crate::failure::Failure::new(format!("there is no command {name:?}"))
            })?,
        };
        let mut text = Vec::new();
        clap_mangen::Man::new(page).render(&mut text)?;
        out.bytes(&text)?;
        Ok(Outcome::Fine)
    }
}
