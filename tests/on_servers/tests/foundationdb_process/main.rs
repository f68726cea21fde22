//! Process-wide behaviour of FoundationDB's client: a process exits with open stores, starts the
//! network itself, or names an unusable cluster file.
//!
//! The program runs itself repeatedly, each time in another way. It needs the client library. Most
//! ways only need a cluster that does not respond; the others use the cluster of
//! `FDB_CLUSTER_FILE`, if it is set.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitCode, exit};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use keyloom::{Error, Reader, ServerError, Store, Writer};
use keyloom_foundationdb::FoundationDb;

const WAY: &str = "KEYLOOM_PROCESS_WAY";
const RUNS: &str = "KEYLOOM_PROCESS_RUNS";
/// The expected exit status of a way, distinct from all other exits.
const EXPECTED: u8 = 42;

static KEPT: OnceLock<FoundationDb> = OnceLock::new();

#[derive(Clone, Copy, PartialEq)]
enum Cluster {
    Silent,
    Answers,
    Unreadable,
    Broken,
}

struct Way {
    name: &'static str,
    cluster: Cluster,
    /// Returns the exit status.
    run: fn(&str) -> u8,
}

const fn way(name: &'static str, cluster: Cluster, run: fn(&str) -> u8) -> Way {
    Way { name, cluster, run }
}

const WAYS: &[Way] = &[
    way("returns after an open that failed", Cluster::Silent, after_an_open_that_failed),
    way("returns while a thread opens", Cluster::Silent, while_a_thread_opens),
    way("exits while a thread opens", Cluster::Silent, exit_while_a_thread_opens),
    way("exits on a third thread", Cluster::Silent, exit_on_a_third_thread),
    way("has started the network itself", Cluster::Silent, with_a_network_of_its_own),
    way("says so, but has started none", Cluster::Silent, without_the_network_it_promised),
    way("names a cluster file by a variable", Cluster::Silent, by_a_variable),
    way("names a broken cluster file", Cluster::Broken, with_a_broken_file),
    way("names an unreadable cluster file", Cluster::Unreadable, with_an_unreadable_file),
    way("returns with a static", Cluster::Answers, with_a_static),
    way("exits with a static", Cluster::Answers, exit_with_a_static),
    way("returns with a busy thread", Cluster::Answers, with_a_busy_thread),
    way("returns after a drop", Cluster::Answers, after_a_drop),
];

fn after_an_open_that_failed(address: &str) -> u8 {
    let begun = Instant::now();
    let error = FoundationDb::options().timeout(Duration::from_millis(300)).open(address);
    let error = error.unwrap_err();
    assert!(matches!(error, Error::Server(ServerError::Unreachable { .. })), "{error:?}");
    let message = error.to_string();
    assert!(message.contains("fdb.cluster") && message.contains("does not answer"), "{message}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    EXPECTED
}

/// Pauses for a random time, so that each process ends at another moment of the client's start.
fn pause() {
    thread::sleep(Duration::from_millis(u64::from(process::id()) * 37 % 400));
}

fn open_on_a_thread(address: &str) {
    let address = address.to_owned();
    thread::spawn(move || FoundationDb::open(&address));
    pause();
}

fn while_a_thread_opens(address: &str) -> u8 {
    open_on_a_thread(address);
    EXPECTED
}

fn exit_while_a_thread_opens(address: &str) -> u8 {
    open_on_a_thread(address);
    exit(EXPECTED.into())
}

fn exit_on_a_third_thread(address: &str) -> u8 {
    open_on_a_thread(address);
    let _ = thread::spawn(|| exit(EXPECTED.into())).join();
    1
}

fn with_a_network_of_its_own(address: &str) -> u8 {
    #[allow(unsafe_code, reason = "the client is a C library")]
    #[link(name = "fdb_c")]
    unsafe extern "C" {
        fn fdb_select_api_version_impl(version: i32, header_version: i32) -> i32;
    }
    // SAFETY: the call takes two numbers.
    #[allow(unsafe_code, reason = "the client's functions are C")]
    let selected = unsafe { fdb_select_api_version_impl(730, 730) };
    assert_eq!(selected, 0);
    let error = FoundationDb::open(address).unwrap_err().to_string();
    assert!(error.contains("network_runs") && error.contains("set it to true"), "{error}");
    EXPECTED
}

fn without_the_network_it_promised(address: &str) -> u8 {
    let error = FoundationDb::options().network_runs(true).open(address).unwrap_err().to_string();
    assert!(error.contains("network_runs") && error.contains("not started"), "{error}");
    EXPECTED
}

/// Runs in `main`, before any thread.
fn by_a_variable(_: &str) -> u8 {
    let error = FoundationDb::open("fdb:").unwrap_err().to_string();
    assert!(error.contains("/nowhere/its.cluster (named by FDB_CLUSTER_FILE)"), "{error}");
    EXPECTED
}

fn with_a_broken_file(address: &str) -> u8 {
    let error = FoundationDb::open(address).unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { what: "the cluster file", .. }), "{error:?}");
    let error = error.to_string();
    assert!(error.contains("fdb.cluster") && error.contains("description:id@"), "{error}");
    EXPECTED
}

fn with_an_unreadable_file(address: &str) -> u8 {
    let error = FoundationDb::open(address).unwrap_err().to_string();
    assert!(error.contains("may not read it") && error.contains("fdb.cluster"), "{error}");
    EXPECTED
}

fn with_a_static(address: &str) -> u8 {
    let store = KEPT.get_or_init(|| FoundationDb::open(address).unwrap());
    store.transact(|txn| txn.delete(b"absent")).unwrap();
    assert!(store.snapshot().unwrap().get(b"absent").unwrap().is_none());
    EXPECTED
}

fn exit_with_a_static(address: &str) -> u8 {
    exit(with_a_static(address).into())
}

fn with_a_busy_thread(address: &str) -> u8 {
    let store = FoundationDb::open(address).unwrap();
    thread::spawn(move || {
        while let Ok(snapshot) = store.snapshot() {
            let _ = snapshot.get(b"absent");
        }
    });
    pause();
    EXPECTED
}

fn after_a_drop(address: &str) -> u8 {
    drop(FoundationDb::open(address).unwrap());
    EXPECTED
}

fn main() -> ExitCode {
    if let (Ok(name), Some(address)) = (env::var(WAY), env::args().nth(1)) {
        let way = WAYS.iter().find(|way| way.name == name).unwrap();
        return ExitCode::from((way.run)(&address));
    }
    let runs = env::var(RUNS).map_or(10, |runs| runs.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for way in WAYS {
        let Some(address) = address(way.cluster, directory.path()) else {
            println!("{}: skipped, for want of FDB_CLUSTER_FILE", way.name);
            skipped += 1;
            continue;
        };
        let wrong: Vec<String> = (0..runs).filter_map(|_| run(way, &address)).collect();
        println!("{}: wrong in {} of {runs} runs {wrong:?}", way.name, wrong.len());
        if wrong.is_empty() { passed += 1 } else { failed += 1 }
    }
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    ExitCode::from(u8::from(failed > 0))
}

fn address(cluster: Cluster, directory: &Path) -> Option<String> {
    let file = directory.join("fdb.cluster");
    let (text, mode) = match cluster {
        Cluster::Answers => return Some(format!("fdb:{}", env::var("FDB_CLUSTER_FILE").ok()?)),
        Cluster::Silent => ("nobody:here@127.0.0.1:9\n", 0o644),
        Cluster::Unreadable => ("nobody:here@127.0.0.1:9\n", 0o200),
        Cluster::Broken => ("no cluster\n", 0o644),
    };
    let _ = fs::remove_file(&file);
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    Some(format!("fdb:{}", file.display()))
}

/// The exit status of a process, unless it is the expected one.
fn run(way: &Way, address: &str) -> Option<String> {
    let mut command = Command::new(env::current_exe().unwrap());
    command.arg(address).env(WAY, way.name);
    if way.name.ends_with("by a variable") {
        command.env("FDB_CLUSTER_FILE", "/nowhere/its.cluster");
    }
    // SAFETY: the call has no arguments and cannot fail.
    #[allow(unsafe_code, reason = "the standard library does not know the user")]
    if way.cluster == Cluster::Unreadable && unsafe { libc::geteuid() } == 0 {
        const NOBODY: u32 = 65_534;
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().unwrap();
    (output.status.code() != Some(EXPECTED.into())).then(|| match output.status.signal() {
        Some(signal) => format!("signal {signal}"),
        None => format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)),
    })
}
