//! Cases that need a separate process: they die, fork, or have other limits.
//!
//! The test program starts itself again, with the case in its environment, and runs only the test
//! below.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child as Process, ChildStdin, Command, Stdio};
use std::time::Duration;

use keyloom::lmdb::Durability;
use keyloom::{
    Batched, BatchedTransaction, Error, KeyRange, Lmdb, LmdbError, Reader, StorageError, Store,
    Transaction, Writer,
};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Child {
    DieWithSnapshots,
    Grow,
    OpenSmall,
    Fork,
    CommitInAFork,
    ForkWhileAnotherThreadWrites,
    NoAddressSpace,
    NoAddressSpaceToOpen,
    NoFiles,
    NoPermission,
    NoWritableLockFile,
    OpenAssumingNoWriter,
    OpenBesideAWriter,
    DiskFull,
    DiskFullBesideDeadReader,
    HeldUpReader,
    HoldSnapshots,
    HoldTransaction,
    HoldTransactionOfLargeMap,
    HoldTransactionOfEngine,
    HoldTransactionAndFork,
    WriteOn,
}

const CASE: &str = "KEYLOOM_TEST_CASE";
const PATH: &str = "KEYLOOM_TEST_PATH";
const SNAPSHOTS: &str = "KEYLOOM_TEST_SNAPSHOTS";
const SURVIVED: &str = "the case is done";

/// Runs `case` on the store in `path` in a separate process, and checks that the process completed
/// it.
pub fn run_child(case: Child, path: &Path) {
    let output = command(case, path).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let dies = case == Child::DieWithSnapshots;
    assert_eq!(output.status.success(), !dies, "{case:?}: {said}");
    assert!(said.contains(SURVIVED), "{case:?}: {said}");
}

fn command(case: Child, path: &Path) -> Command {
    let program = std::env::current_exe().unwrap();
    // The limit is in KiB. The signal is ignored, so that an excessive write returns an error.
    let limited = |kib: u32| {
        let mut shell = Command::new("bash");
        let limit = format!("trap '' XFSZ; ulimit -f {kib}; exec \"$0\" \"$@\"");
        shell.args(["-c", &limit]).arg(&program);
        shell
    };
    let mut command = match case {
        Child::DiskFull => limited(1024),
        Child::DiskFullBesideDeadReader => limited(4096),
        _ => Command::new(&program),
    };
    command.args(["--exact", "child::in_a_process_of_its_own", "--nocapture"]);
    command.env(CASE, format!("{case:?}")).env(PATH, path);
    command
}

/// A process that holds a resource of a store until it is killed, or its input ends.
pub struct Holder(Process, Option<ChildStdin>);

impl Holder {
    /// Starts a process that holds snapshots.
    pub fn start(path: &Path, snapshots: usize) -> Self {
        Self::spawn(command(Child::HoldSnapshots, path).env(SNAPSHOTS, snapshots.to_string()))
    }

    /// Starts a process that holds a resource in another case.
    pub fn of(case: Child, path: &Path) -> Self {
        Self::spawn(&mut command(case, path))
    }

    fn spawn(command: &mut Command) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = piped.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        // With one test thread, the test harness prints the name of the test on the same line.
        let begun = lines.map_while(Result::ok).any(|line| line.ends_with(SURVIVED));
        assert!(begun, "the process holds nothing");
        let input = process.stdin.take();
        Self(process, input)
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Ends the process with SIGKILL. Returns its input, which its forks may still read.
    pub fn kill(mut self) -> Option<ChildStdin> {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
        self.1.take()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // The process may have exited already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn hold_snapshots(path: &Path) {
    let count: usize = std::env::var(SNAPSHOTS).unwrap().parse().unwrap();
    let store = open(path);
    let _held: Vec<_> = (0..count).map(|_| store.snapshot().unwrap()).collect();
    hold();
}

/// Waits until the parent ends, and keeps all resources.
fn hold() {
    println!("{SURVIVED}");
    drop(std::io::stdin().read_line(&mut String::new()));
}

fn hold_transaction(path: &Path) {
    let store = open(path);
    let mut txn = store.begin().unwrap();
    txn.put(b"not committed", b"").unwrap();
    hold();
}

/// Like a program that uses the engine without keyloom.
fn hold_transaction_of_engine(path: &Path) {
    let mut options = heed::EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(64 << 20).max_dbs(2);
    // SAFETY: the store is open only once in this process.
    let env = unsafe { options.open(path) }.unwrap();
    let _txn = env.write_txn().unwrap();
    hold();
}

/// The fork outlives this process.
fn hold_transaction_and_fork(path: &Path) {
    let store = open(path);
    let txn = store.begin().unwrap();
    // SAFETY: the child waits and leaves by `_exit`.
    if unsafe { libc::fork() } == 0 {
        let mut byte = [0];
        // SAFETY: reads one byte, or the end, into one byte; then ends the child at once.
        unsafe {
            libc::read(0, byte.as_mut_ptr().cast(), 1);
            libc::_exit(0);
        }
    }
    hold();
    drop(txn);
}

fn write_on(path: &Path) {
    let store = open(path);
    std::thread::spawn(move || {
        for n in 0u64.. {
            let mut txn = store.begin().unwrap();
            txn.put(b"written on", &n.to_be_bytes()).unwrap();
            // The interval between two transactions is so short that no other process gets the
            // lock.
            std::thread::sleep(Duration::from_millis(2));
            txn.commit().unwrap();
        }
    });
    hold();
}

#[test]
fn in_a_process_of_its_own() {
    let (Ok(case), Ok(path)) = (std::env::var(CASE), std::env::var(PATH)) else { return };
    let path = Path::new(&path);
    match case.as_str() {
        "DieWithSnapshots" => die_with_snapshots(path),
        "Grow" => grow(path),
        "OpenSmall" => open_small(path),
        "Fork" => fork(path),
        "CommitInAFork" => commit_in_a_fork(path),
        "ForkWhileAnotherThreadWrites" => fork_while_another_thread_writes(path),
        "NoAddressSpace" => no_address_space(path),
        "NoAddressSpaceToOpen" => no_address_space_to_open(path),
        "NoFiles" => no_files(path),
        "NoPermission" => no_permission(path),
        "NoWritableLockFile" => no_writable_lock_file(path),
        "OpenAssumingNoWriter" => assert_eq!(crate::count(&assuming_no_writer(path).unwrap()), 10),
        "OpenBesideAWriter" => {
            let error = assuming_no_writer(path).map(drop).unwrap_err();
            assert!(matches!(error, Error::Lmdb(LmdbError::OpenElsewhere { .. })), "{error:?}");
        }
        "DiskFull" => disk_full(path),
        "DiskFullBesideDeadReader" => crate::dead_readers::fill_disk(path),
        "HoldTransaction" => hold_transaction(path),
        "HoldTransactionOfLargeMap" => {
            grow(path);
            hold_transaction(path);
        }
        "HoldTransactionOfEngine" => hold_transaction_of_engine(path),
        "HoldTransactionAndFork" => hold_transaction_and_fork(path),
        "WriteOn" => write_on(path),
        "HoldSnapshots" => hold_snapshots(path),
        "HeldUpReader" => crate::beginning::held_up_reader(path),
        other => panic!("unknown case {other}"),
    }
    println!("{SURVIVED}");
}

fn open(path: &Path) -> Lmdb {
    Lmdb::options().durability(Durability::MayLoseStore).max_readers(3).open(path).unwrap()
}

fn die_with_snapshots(path: &Path) {
    let store = open(path);
    let _held: Vec<_> = (0..3).map(|_| store.snapshot().unwrap()).collect();
    println!("{SURVIVED}");
    std::process::abort();
}

fn open_small(path: &Path) {
    let options = Lmdb::options().durability(Durability::MayLoseStore).map_bytes(256 << 10);
    let store = options.open(path).unwrap();
    assert_eq!(store.snapshot().unwrap().count(KeyRange::all()).unwrap(), 5_000);
}

fn grow(path: &Path) {
    let options = Lmdb::options().durability(Durability::MayLoseStore).map_bytes(256 << 10);
    let store = options.open(path).unwrap();
    let put = |n: u32| (n.to_be_bytes(), [7; 1000]);
    store
        .transact(|txn| (0..5_000).map(put).try_for_each(|(key, value)| txn.put(&key, &value)))
        .unwrap();
}

fn fork(path: &Path) {
    let store = open(path);
    store.transact(|txn| txn.put(b"a", b"1")).unwrap();
    let snapshot = store.snapshot().unwrap();
    // SAFETY: the child touches the store, prints nothing and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refuses = matches!(store.snapshot(), Err(Error::Forked { .. }))
            && matches!(store.begin(), Err(Error::Forked { .. }))
            && matches!(store.flush(), Err(Error::Forked { .. }));
        // Dropping it must not free the parent's slot.
        drop(snapshot);
        // The remedy in the error: drop the handle, and open the store again.
        drop(store);
        let reopened = Lmdb::options()
            .max_readers(3)
            .open(path)
            .is_ok_and(|store| store.transact(|txn| txn.put(b"from the child", b"")).is_ok());
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!refuses) + 2 * i32::from(!reopened)) };
    }
    let mut status = -1;
    // SAFETY: waits for the child that was just created.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0, "the child was not refused");
    // If the slot were free, these commits would reuse the pages of the snapshot.
    for n in 0..100u8 {
        store.transact(|txn| txn.put(b"a", &[n])).unwrap();
    }
    assert_eq!(snapshot.get(b"a").unwrap(), Some(&b"1"[..]));
}

/// A transaction that began before the fork belongs only to the parent.
fn commit_in_a_fork(path: &Path) {
    let store = open(path);
    let mut txn = store.begin().unwrap();
    txn.put(b"of the transaction", b"1").unwrap();
    // SAFETY: the child commits, prints nothing and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refuses = matches!(txn.commit(), Err(Error::Forked { .. }));
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!refuses)) };
    }
    let mut status = -1;
    // SAFETY: waits for the child that was just created.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0, "the child was not refused");
    assert!(store.snapshot().unwrap().get(b"of the transaction").unwrap().is_none());
    txn.commit().unwrap();
    assert_eq!(store.snapshot().unwrap().get(b"of the transaction").unwrap(), Some(&b"1"[..]));
}

/// The child must not wait for a writer that exists only in its parent.
fn fork_while_another_thread_writes(path: &Path) {
    let store = open(path);
    let (begun, wait_for_begun) = std::sync::mpsc::channel();
    let (finish, wait_for_finish) = std::sync::mpsc::channel::<()>();
    let batched = Batched::new(store.clone());
    let writer = std::thread::spawn({
        let batched = batched.clone();
        move || {
            let hold = move |_: &mut BatchedTransaction<'_, Lmdb>| {
                begun.send(()).unwrap();
                wait_for_finish.recv().unwrap();
                Ok(())
            };
            batched.transact_batched(hold).unwrap();
        }
    });
    wait_for_begun.recv().unwrap();
    // SAFETY: the child calls the store and exits by `_exit`; if it blocks, the alarm kills it.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: only sets an alarm that ends this child.
        unsafe { libc::alarm(20) };
        // Neither call waits for a batch whose leader exists only in the parent.
        let refuses = matches!(store.begin(), Err(Error::Forked { .. }))
            && matches!(
                batched.transact_batched(|txn| txn.put(b"a", b"")),
                Err(Error::Forked { .. })
            );
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!refuses)) };
    }
    let mut status = -1;
    // SAFETY: waits for the child that was just created.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0, "the child was not refused");
    finish.send(()).unwrap();
    writer.join().unwrap();
}

fn no_address_space(path: &Path) {
    let options = Lmdb::options().durability(Durability::MayLoseStore).map_bytes(64 << 20);
    let store = options.open(path).unwrap();
    store.transact(|txn| txn.put(b"a", b"before")).unwrap();
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = status.split(' ').next().unwrap().parse().unwrap();
    let limit = libc::rlimit { rlim_cur: pages * 4096 + (80 << 20), rlim_max: libc::RLIM_INFINITY };
    // SAFETY: only lowers a limit of this process.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
    let error = store
        .transact(|txn| (0..100u32).try_for_each(|n| txn.put(&n.to_be_bytes(), &[7; 1 << 20])))
        .unwrap_err();
    assert!(
        matches!(error, Error::Lmdb(LmdbError::AddressSpace { wanted_bytes: 134_217_728, .. })),
        "{error:?}"
    );
    assert!(error.to_string().contains("max_map_bytes"), "{error}");
    // The map is still the old one, and still valid.
    assert_eq!(store.snapshot().unwrap().get(b"a").unwrap(), Some(&b"before"[..]));
    // Transactions that need no more space continue to work.
    store.transact(|txn| txn.put(b"a", b"after")).unwrap();
}

fn no_address_space_to_open(path: &Path) {
    // Less than the default size of the map.
    let limit = libc::rlimit { rlim_cur: 1 << 30, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: only lowers a limit of this process.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
    let error = Lmdb::open(path).map(drop).unwrap_err();
    assert!(matches!(error, Error::Lmdb(LmdbError::AddressSpace { .. })), "{error:?}");
    assert!(error.to_string().contains("`map_bytes`"), "{error}");
    open_with(path, 64 << 20).transact(|txn| txn.put(b"a", b"")).unwrap();
}

fn open_with(path: &Path, map_bytes: usize) -> Lmdb {
    Lmdb::options().map_bytes(map_bytes).open(path).unwrap()
}

fn no_files(path: &Path) {
    drop(open(path));
    let limit = |files| {
        let limit = libc::rlimit { rlim_cur: files, rlim_max: 1024 };
        // SAFETY: only changes a limit of this process.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    };
    limit(3);
    let error = Lmdb::open(path).map(drop).unwrap_err();
    assert!(matches!(error, Error::Storage(StorageError::Io { .. })), "{error:?}");
    assert!(error.to_string().contains(&*path.to_string_lossy()), "{error}");
    limit(1024);
    drop(open(path));
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Root has all permissions, so a process of root changes to another user.
fn become_ordinary() {
    const NOBODY: u32 = 65_534;
    // SAFETY: the process has only one relevant thread, and only gives up privileges.
    let is_ordinary = unsafe { libc::geteuid() != 0 || libc::setuid(NOBODY) == 0 };
    assert!(is_ordinary);
}

fn assuming_no_writer(path: &Path) -> keyloom::Result<Lmdb> {
    Lmdb::options().read_only(true).assume_no_writer(true).open(path)
}

/// Opens the store as a user who may read it but not write to it.
fn no_writable_lock_file(path: &Path) {
    let unreadable = path.join("unreadable");
    drop(open(&unreadable));
    mode(&unreadable.join("data.mdb"), 0o000);
    let modes = [(path, 0o555), (&unreadable, 0o755), (&path.join("data.mdb"), 0o444)];
    modes.into_iter().for_each(|(path, bits)| mode(path, bits));
    // The first store has a lock file that cannot be written, the second one has none and cannot
    // create one.
    let lock = path.join("lock.mdb");
    mode(&lock, 0o444);
    let other = path.with_extension("without a lock file");
    std::fs::create_dir(&other).unwrap();
    std::fs::copy(path.join("data.mdb"), other.join("data.mdb")).unwrap();
    mode(&other, 0o555);
    become_ordinary();
    for directory in [path, &other] {
        let error = Lmdb::options().read_only(true).open(directory).map(drop).unwrap_err();
        let Error::Lmdb(LmdbError::LockFileNotWritable { path, .. }) = &error else {
            panic!("{error:?}")
        };
        assert_eq!(path, &directory.join("lock.mdb"));
        let text = error.to_string();
        assert!(text.contains("assume_no_writer(true)") && !text.contains("read_only"), "{text}");
        assert_eq!(crate::count(&assuming_no_writer(directory).unwrap()), 10);
    }
    for options in [Lmdb::options().read_only(true), Lmdb::options()] {
        let error = options.open(&unreadable).map(drop).unwrap_err();
        assert!(
            matches!(error, Error::Storage(StorageError::PermissionDenied { action: "read", .. })),
            "{error:?}"
        );
        assert!(!error.to_string().contains("read_only"), "{error}");
    }
    let error = Lmdb::open(path).map(drop).unwrap_err();
    assert!(
        matches!(error, Error::Storage(StorageError::PermissionDenied { action: "write", .. })),
        "{error:?}"
    );
    assert!(error.to_string().contains("`read_only(true)`"), "{error}");
}

/// Opens the store as a user who may neither read nor write it. Root has all permissions, so a
/// process of root first changes to an ordinary user. All users can access the directory of the
/// store, but not its files.
fn no_permission(path: &Path) {
    let closed = path.join("closed");
    std::fs::create_dir(&closed).unwrap();
    mode(&closed, 0o555);
    let unreadable = path.join("unreadable");
    std::fs::create_dir(&unreadable).unwrap();
    mode(&unreadable, 0o333);
    mode(path, 0o755);
    mode(&path.join("data.mdb"), 0o400);
    become_ordinary();
    let options = || Lmdb::options().durability(Durability::MayLoseStore);
    for directory in [path, &closed, Path::new("/proc")] {
        let error = options().open(directory).map(drop).unwrap_err();
        let named = matches!(
            error,
            Error::Storage(StorageError::PermissionDenied { .. })
                | Error::Storage(StorageError::MissingDirectory { .. })
        );
        assert!(named, "{}: {error:?}", directory.display());
    }
    let error = options().open(closed.join("new")).map(drop).unwrap_err();
    assert!(
        matches!(error, Error::Storage(StorageError::PermissionDenied { action: "write", .. })),
        "{error:?}"
    );
    // The store's name is in a directory that cannot be read, and so cannot be synced.
    let store = Lmdb::open(unreadable.join("new")).unwrap();
    store.transact(|txn| txn.put(b"a", b"1")).unwrap();
    store.flush().unwrap();
    // Restores the mode, so that the test can remove the directory. The ordinary user may not do
    // this, and root need not.
    drop(std::fs::set_permissions(&unreadable, std::fs::Permissions::from_mode(0o755)));
}

fn disk_full(path: &Path) {
    let store = Lmdb::open(path).unwrap();
    let put = |n: u32| store.transact(|txn| txn.put(&n.to_be_bytes(), &[7; 1000]));
    (0..100).for_each(|n| put(n).unwrap());
    let error = store
        .transact(|txn| (1_000..9_000u32).try_for_each(|n| txn.put(&n.to_be_bytes(), &[7; 1000])))
        .unwrap_err();
    let Error::Storage(StorageError::DiskFull { source, .. }) = &error else { panic!("{error:?}") };
    assert_eq!(source.raw_os_error(), Some(libc::EFBIG), "{error}");
    assert!(error.to_string().contains("free some space"), "{error}");
    assert_eq!(store.snapshot().unwrap().count(KeyRange::all()).unwrap(), 100);
    put(100).unwrap();
}
