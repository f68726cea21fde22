//! Two stores with the same entries, on which the same commands run.

use std::collections::BTreeSet;

use keyloom::Lmdb;

use crate::engines::{Engine, Entries, empty, entries, open, write};
use crate::support::{Directory, Ran, run_with_input};

/// The names of the stores of a side, as arguments of commands.
const NAMES: [&str; 3] = ["STORE", "COPY", "IMPORT"];

/// The stores of one engine.
pub struct Side {
    pub engine: Engine,
    addresses: [String; NAMES.len()],
    _directory: Directory,
}

impl Side {
    fn new(engine: Engine) -> Option<Self> {
        let directory = Directory::new();
        let address = |name: &str| engine.address(&directory, name);
        let [store, copy, import] = NAMES.map(address);
        Some(Self { engine, addresses: [store?, copy?, import?], _directory: directory })
    }

    /// The address of `STORE`, `COPY` or `IMPORT`.
    pub fn address(&self, name: &str) -> &str {
        let place = NAMES.iter().position(|one| *one == name);
        place.map_or_else(|| panic!("{name} is not a store"), |place| &self.addresses[place])
    }

    fn is_on_server(&self) -> bool {
        self.address("STORE").contains("://")
    }

    /// Runs the command with the addresses of this side. Addresses in the output are replaced.
    pub fn run(&self, arguments: &[&str], input: &str) -> Ran {
        let words: Vec<&str> = arguments
            .iter()
            .map(|word| if NAMES.contains(word) { self.address(word) } else { word })
            .collect();
        let Ran { code, out, err } = run_with_input(&words, input.as_bytes());
        Ran { code, out: self.unnamed(&out), err: without_progress(&self.unnamed(&err)) }
    }

    /// The text with `ADDRESS` in place of each address, also of one without its table.
    pub fn unnamed(&self, text: &str) -> String {
        self.addresses.iter().fold(text.to_owned(), |text, address| {
            let shown = address.split('?').next().unwrap_or_default();
            text.replace(address, "ADDRESS").replace(shown, "ADDRESS")
        })
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // A failed test has reported its error.
        if self.is_on_server() && !std::thread::panicking() {
            self.addresses.iter().for_each(|address| empty(address));
        }
    }
}

/// Progress is printed every half second, so its lines depend on the speed of the store.
fn without_progress(err: &str) -> String {
    err.split_inclusive('\n').filter(|line| !line.trim_end().ends_with(" bytes")).collect()
}

/// LMDB, and the engine that is compared with it.
pub struct Pair {
    pub lmdb: Side,
    pub other: Side,
    /// The commands that ran.
    pub seen: BTreeSet<String>,
}

impl Pair {
    /// Fills `STORE` on LMDB, and writes the same bytes to the other engine. `None` if its server
    /// is missing.
    pub fn new(engine: Engine, fill: impl FnOnce(&Lmdb)) -> Option<Self> {
        let (lmdb, other) = (Side::new(Engine::Lmdb)?, Side::new(engine)?);
        fill(&Lmdb::open(lmdb.address("STORE").trim_start_matches("lmdb:")).unwrap());
        write(other.address("STORE"), &entries(lmdb.address("STORE")));
        Some(Self { lmdb, other, seen: BTreeSet::new() })
    }

    /// Runs a command on both sides, which must print the same.
    pub fn same(&mut self, arguments: &[&str]) -> Ran {
        self.same_with_input(arguments, "")
    }

    pub fn same_with_input(&mut self, arguments: &[&str], input: &str) -> Ran {
        self.seen.extend(arguments.first().map(|&command| command.to_owned()));
        let [expected, found] = self.both(arguments, input);
        if let Some(difference) = difference(&expected, &found) {
            panic!("{:?} answers {arguments:?} differently: {difference}", self.other.engine);
        }
        expected
    }

    /// Runs a command that must succeed on both sides.
    pub fn fine(&mut self, arguments: &[&str]) -> String {
        let ran = self.same(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {}{}", ran.out, ran.err);
        ran.out
    }

    /// Runs a command on both sides.
    pub fn both(&self, arguments: &[&str], input: &str) -> [Ran; 2] {
        [&self.lmdb, &self.other].map(|side| side.run(arguments, input))
    }

    /// The entries of a store, which must be the same on both sides.
    pub fn entries(&self, name: &str) -> Entries {
        let [expected, found] = [&self.lmdb, &self.other].map(|side| entries(side.address(name)));
        assert!(expected == found, "{name} on {:?} has other entries", self.other.engine);
        expected
    }

    /// Changes a store through the library on both sides.
    pub fn change(&self, name: &str, change: impl Fn(&keyloom::AnyStore)) {
        let sides = [&self.lmdb, &self.other];
        sides.iter().for_each(|side| change(&open(side.address(name))));
    }
}

/// How two runs differ.
pub fn difference(expected: &Ran, found: &Ran) -> Option<String> {
    let of = |ran: &Ran| format!("status {}\n{}{}", ran.code, ran.out, ran.err);
    let (expected, found) = (of(expected), of(found));
    (expected != found).then(|| format!("{found}\nLMDB: {expected}"))
}
