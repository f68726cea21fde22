//! The processes that are killed, and the protocol by which the parent steps them from commit to
//! commit.

use std::io::{BufRead, BufReader, Lines, StdinLock, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use keyloom::{Lmdb, Result, Store};
use keyloom_locking::work::{OnTakeover, Operation, Work};
use keyloom_locking::{LeaseOptions, Session};

use crate::rename::{Drive, OPTIONS, argument, both_directories, open};

const PATH: &str = "KEYLOOM_LOCK_KILLS_PATH";
const ROLE: &str = "KEYLOOM_LOCK_KILLS_ROLE";
const NOW: &str = "KEYLOOM_LOCK_KILLS_NOW";
/// The prefix of each line of the protocol, because the test harness also prints lines.
const MARK: &str = "@";

/// The role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Locks the directories and renames, as recorded work. Makes [`COMMITS`] commits.
    Holder,
    /// The negative control: moves the files under the lock, but records no work.
    Unrecorded,
    /// Finishes the work of dead processes.
    Rescuer(OnTakeover),
    /// Holds a short lease with the system clock and a heartbeat.
    Beating,
}

const ROLES: [Role; 5] = [
    Role::Holder,
    Role::Unrecorded,
    Role::Rescuer(OnTakeover::RollForward),
    Role::Rescuer(OnTakeover::RollBack),
    Role::Beating,
];

/// The commits of a holder: session, lock, record of the work, four steps, end of the work,
/// release, end of the session.
pub const COMMITS: u64 = 10;
/// From this commit on there is recorded, unfinished work.
pub const BEGUN: u64 = 3;
/// From this commit on the work is done.
pub const DONE: u64 = 8;

/// Blocks the process before each commit, and acknowledges each.
struct Gate {
    lines: Lines<StdinLock<'static>>,
    is_open: bool,
    commits: u64,
}

impl Gate {
    fn pass<T>(&mut self, commit: impl FnOnce() -> Result<T>) -> Result<T> {
        self.wait();
        let done = commit()?;
        self.commits += 1;
        println!("\n{MARK}{}", self.commits);
        Ok(done)
    }

    /// Waits for a line from the parent; "run" opens the gate for all commits.
    fn wait(&mut self) {
        if !self.is_open {
            match self.lines.next() {
                Some(line) => self.is_open = line.unwrap() == "run",
                None => std::process::exit(0),
            }
        }
    }
}

/// Not a test of its own: a child process that plays a role until a test below kills it.
#[test]
fn in_a_process_of_its_own() {
    let Ok(path) = std::env::var(PATH) else { return };
    let store = open(Path::new(&path));
    let role: usize = std::env::var(ROLE).unwrap().parse().unwrap();
    let drive = match std::env::var(NOW).unwrap().parse() {
        Ok(now) => Drive::open(&store, now),
        Err(_) => Drive::with_system_clock(&store),
    };
    let lines = std::io::stdin().lines();
    let mut gate = Gate { lines, is_open: false, commits: 0 };
    println!("\n{MARK}0");
    let played = match ROLES[role] {
        Role::Holder => hold(&store, &drive, &mut gate, true),
        Role::Unrecorded => hold(&store, &drive, &mut gate, false),
        Role::Rescuer(on_takeover) => rescue(&store, &drive, &mut gate, on_takeover),
        Role::Beating => beat(&store, &drive, &mut gate),
    };
    match played {
        Ok(()) => gate.wait(),
        Err(error) => println!("\n{MARK}refused: {error}"),
    }
}

fn hold(store: &Lmdb, drive: &Drive, gate: &mut Gate, is_recorded: bool) -> Result<()> {
    let Drive { locks, .. } = drive;
    let session =
        gate.pass(|| store.transact(|txn| locks.begin_session(txn, "holder", &OPTIONS)))?;
    let grant =
        gate.pass(|| store.transact(|txn| locks.try_lock(txn, session, &both_directories())))?;
    rename(store, drive, grant, gate, is_recorded)?;
    gate.pass(|| store.transact(|txn| locks.release(txn, grant)))?;
    gate.pass(|| store.transact(|txn| locks.end_session(txn, session).map(drop)))
}

fn rename(
    store: &Lmdb,
    drive: &Drive,
    grant: keyloom_locking::Grant,
    gate: &mut Gate,
    is_recorded: bool,
) -> Result<()> {
    let Drive { locks, .. } = drive;
    // The holder itself never rolls back.
    let operation = drive.operation(OnTakeover::RollForward);
    let name = operation.name();
    if is_recorded {
        gate.pass(|| store.transact(|txn| locks.begin_work(txn, grant, name, &argument())))?;
        while gate.pass(|| store.transact(|txn| locks.work_step(txn, grant, &operation)))? {}
        return Ok(());
    }
    let work = Work {
        operation: name.to_owned(),
        argument: argument(),
        position: Vec::new(),
        is_rolling_back: false,
        started: 0,
        takeovers: 0,
    };
    let step = || {
        store.transact(|txn| {
            locks.verify(txn, grant)?;
            operation.step(&mut keyloom::DynWriter::new(txn), &work)
        })
    };
    while gate.pass(step)? != keyloom_locking::work::Step::Done {}
    Ok(())
}

fn rescue(store: &Lmdb, drive: &Drive, gate: &mut Gate, on_takeover: OnTakeover) -> Result<()> {
    let Drive { locks, .. } = drive;
    let session =
        gate.pass(|| store.transact(|txn| locks.begin_session(txn, "rescuer", &OPTIONS)))?;
    gate.pass(|| locks.recover(store, session, &drive.operations(on_takeover)).map(drop))
}

/// The lease of processes with the system clock.
pub const SHORT: LeaseOptions =
    LeaseOptions { lease: Duration::from_millis(200), grace: Duration::from_millis(100) };

fn beat(store: &Lmdb, drive: &Drive, gate: &mut Gate) -> Result<()> {
    let session = gate.pass(|| Session::begin_with(store, &drive.locks, "beating", SHORT))?;
    let guard = gate.pass(|| session.lock(&both_directories()))?;
    rename(store, drive, *guard.grant(), gate, true)?;
    gate.wait();
    Ok(())
}

/// A child process, controlled by its parent.
pub struct Process {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    /// The last acknowledged commit.
    pub acknowledged: u64,
}

impl Process {
    /// Starts a process whose clock is set to `now`; `None` means the system clock.
    pub fn start(path: &Path, role: Role, now: Option<u64>) -> Self {
        let number = ROLES.iter().position(|other| *other == role).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child::in_a_process_of_its_own", "--nocapture"])
            .env(PATH, path)
            .env(ROLE, number.to_string())
            .env(NOW, now.map_or("system".to_owned(), |now| now.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut process = Self { child, input, lines, acknowledged: 0 };
        assert_eq!(process.hear().as_deref(), Some("0"));
        process
    }

    /// Reads the next line of the protocol.
    fn hear(&mut self) -> Option<String> {
        let marked =
            |line: std::io::Result<String>| Some(line.ok()?.strip_prefix(MARK)?.to_owned());
        self.lines.by_ref().find_map(marked)
    }

    fn say(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    /// Runs the process up to this commit, and waits for each commit.
    pub fn run_to(&mut self, commit: u64) {
        while self.acknowledged < commit {
            let heard = self.step();
            assert_eq!(heard, Ok(()), "after the commit {}", self.acknowledged);
        }
    }

    /// Lets the process make one commit. Returns the error if the commit is refused.
    pub fn step(&mut self) -> Result<(), String> {
        self.say("step");
        let heard = self.hear().unwrap();
        self.acknowledged = heard.parse().map_err(|_| heard)?;
        Ok(())
    }

    /// Runs the process without stops, and kills it after a pause.
    pub fn run_and_kill(mut self, pause: Duration) -> u64 {
        self.say("run");
        std::thread::sleep(pause);
        self.kill()
    }

    /// Kills the process with SIGKILL. Returns the last acknowledged commit.
    pub fn kill(mut self) -> u64 {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        while let Some(heard) = self.hear() {
            self.acknowledged = heard.parse().unwrap();
        }
        self.acknowledged
    }
}
