//! `keyloom explore`: a web page that shows what a store holds.

mod api;
mod bitmaps;
mod browse;
mod explain;
mod graph;
mod guard;
mod overview;
mod params;
mod places;
mod related;
mod server;
mod site;
#[cfg(test)]
mod tests;
mod text;
mod tree;
mod work;

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::address::{self, Access, open};
use crate::failure::{Failure, Outcome, Result};
use crate::output::{Output, note};

use guard::Guard;
use site::Site;

/// Serves a web page that shows the store, until Ctrl-C. It writes nothing.
#[derive(Debug, Args)]
pub struct Explore {
    /// The store: lmdb:DIRECTORY, redb:FILE, fjall:DIRECTORY, …
    pub address: String,
    /// The IP address and port to listen on; port 0 is a free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Whether to open the page in a browser [default: yes on a terminal]
    #[arg(long, value_enum)]
    pub open: Option<Choice>,
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// Yes
    Yes,
    /// No
    No,
}

impl Explore {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let store = open(&self.address, Access::Read)?;
        let listener = std::net::TcpListener::bind(self.listen).map_err(|error| {
            Failure::new(format!("the address {} is not usable: {error}", self.listen))
        })?;
        let listen = listener.local_addr().map_err(|error| Failure::new(error.to_string()))?;
        let guard = Guard::new(listen);
        let url = guard.url();
        if guard.is_remote() {
            note(
                "the page is not only for this machine: everyone who has its URL, with the token in it, can read the whole store, and the network is not encrypted",
            );
        }
        out.either(|| json!({"url": url}), || format!("the store is shown at {url}"))?;
        out.flush()?;
        let is_on_terminal = std::io::stdout().is_terminal();
        if self.open.map_or(is_on_terminal, |choice| choice == Choice::Yes) {
            open_browser(&url);
        }
        let address = address::shown(&self.address);
        server::serve(listener, Site { store, address, guard })?;
        Ok(Outcome::Fine)
    }
}

/// Opens the page with the browser of the desktop, if there is one.
fn open_browser(url: &str) {
    let opener = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        _ => "xdg-open",
    };
    let mut command = Command::new(opener);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = command.spawn() {
        note(&format!("no browser could be opened with {opener}: {error}"));
    }
}
