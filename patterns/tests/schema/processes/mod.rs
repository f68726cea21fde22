//! Two concurrent processes with different schemas: each operation is refused or correct.

mod misuse;
mod model;
mod program;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use keyloom::Store;
use keyloom::value::Postcard;

use keyloom_testing::laws::{clear, dump_all};
use model::{Places, faults};
use program::{Change, MARK, PART, Part, Program, Role, Said, Sale, sale};

const CHANGES: [Change; 8] = [
    Change::IndexAdded,
    Change::IndexRemoved,
    Change::IndexChanged { raised: true },
    Change::IndexChanged { raised: false },
    Change::TypeChanged { raised: true },
    Change::TypeChanged { raised: false },
    Change::CodecChanged { raised: true },
    Change::CodecChanged { raised: false },
];
const ROLES: [Role; 3] = [Role::Reader, Role::Writer, Role::Builder];

/// A program that waits for a line before each step.
struct Process {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(part: &Part) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::program::in_a_process_of_its_own", "--nocapture"])
            .env(PART, serde_json::to_string(part).unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, input, output }
    }

    fn go(&mut self) {
        writeln!(self.input).unwrap();
    }

    /// Reads the reports of the process until its step is done.
    fn said(&mut self) -> Vec<Said> {
        let mut all = Vec::new();
        for line in self.output.by_ref().map(Result::unwrap) {
            match line.strip_prefix(MARK).map(|line| serde_json::from_str(line).unwrap()) {
                Some(Said::Done) => return all,
                said => all.extend(said),
            }
        }
        panic!("the process has ended after {all:?}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// The shop as the old program left it.
fn prepare(store: &(impl Store + Clone), change: Change) -> (BTreeMap<u32, Sale>, Places) {
    clear(store);
    let records: BTreeMap<u32, Sale> = (0..20).map(|id| (id, sale(id))).collect();
    let old = Program::<_, Sale, Postcard>::open(store, change, false).unwrap();
    records.iter().for_each(|(id, sale)| old.put(*id, sale.clone()).unwrap());
    let by_town = old.by_town.as_ref().map(|index| index.space());
    let places = Places { sales: old.sales.space().clone(), totals: old.totals.space(), by_town };
    (records, places)
}

/// The reports of the old and the new program in three concurrent steps: open, work, work.
fn run_both(parts: [&Part; 2]) -> [Vec<Said>; 2] {
    let mut processes = parts.map(Process::start);
    let mut all = [Vec::new(), Vec::new()];
    for _ in 0..3 {
        processes.iter_mut().for_each(Process::go);
        for (process, all) in processes.iter_mut().zip(&mut all) {
            all.extend(process.said());
        }
    }
    all
}

/// The faults that a pair of programs leaves, and the numbers of correct and refused operations.
fn pair(
    store: &(impl Store + Clone),
    address: &[String],
    change: Change,
    roles: [Role; 2],
) -> (Vec<String>, [usize; 2]) {
    let (before, mut places) = prepare(store, change);
    let part = |is_new: bool| {
        let (store, role) = (address.to_vec(), roles[usize::from(is_new)]);
        Part { store, change, is_new, role }
    };
    let said = run_both([&part(false), &part(true)]);
    if change == Change::IndexAdded {
        let new = Program::<_, Sale, Postcard>::open(store, change, true).unwrap();
        places.by_town = new.by_town.as_ref().map(|index| index.space());
    }
    let refused = said.iter().flatten().filter(|said| matches!(said, Said::Refused(..))).count();
    let all = said.iter().flatten().count();
    (faults(store, change, &before, &places, &said), [all - refused, refused])
}

fn every_pair_is_refused_or_right(store: &(impl Store + Clone), address: &[String]) {
    let mut counts = [0, 0];
    for change in CHANGES {
        let mut of_change = [0, 0];
        for roles in ROLES.iter().flat_map(|one| ROLES.map(|other| [*one, other])) {
            let (faults, [right, refused]) = pair(store, address, change, roles);
            assert_eq!(faults, [""; 0], "{change:?}, {roles:?}");
            of_change = [of_change[0] + right, of_change[1] + refused];
        }
        println!("{change:?}: {} right, {} refused", of_change[0], of_change[1]);
        // Another name of a type under the same version is not a change. Both programs work, and
        // only timing-dependent operations are refused, such as a query during a build.
        let least = if change == (Change::TypeChanged { raised: false }) { 0 } else { 9 };
        assert!(of_change[0] > 8 && of_change[1] >= least, "{change:?}: {of_change:?}");
        counts = [counts[0] + of_change[0], counts[1] + of_change[1]];
    }
    println!("{} right, {} refused", counts[0], counts[1]);
}

/// Programs that bypass the schema: the model detects their writes.
fn bypasses_are_caught(store: &(impl Store + Clone), address: &[String]) {
    let roles = [Role::RawWriter, Role::Reader];
    let (faults, _) = pair(store, address, Change::IndexRemoved, roles);
    for name in ["by_town is", "totals is", "totals were"] {
        assert!(faults.iter().any(|fault| fault.starts_with(name)), "{name}: {faults:?}");
    }
    let roles = [Role::Writer, Role::RawReader];
    let (faults, _) = pair(store, address, Change::IndexAdded, roles);
    assert!(faults.iter().any(|fault| fault.starts_with("a query found")), "{faults:?}");
}

/// One program has the shop open and writes. The other program tries each misuse, and changes
/// nothing.
fn misuses_are_refused(store: &(impl Store + Clone), address: &[String]) {
    // The two programs have the same definition.
    let change = Change::IndexAdded;
    for (number, answers) in misuse::ANSWERS.iter().enumerate() {
        let (before, _) = prepare(store, change);
        let part = |role| Part { store: address.to_vec(), change, is_new: true, role };
        let mut writer = Process::start(&part(Role::Writer));
        let mut misuser = Process::start(&part(Role::Misuser(number)));
        let step = |process: &mut Process| {
            process.go();
            process.said()
        };
        assert_eq!(step(&mut writer), [Said::Opened]);
        let new = Program::<_, Sale, Postcard>::open(store, change, true).unwrap();
        let index = new.by_town.as_ref().unwrap();
        index.build(store).unwrap();
        assert_eq!(step(&mut misuser), [Said::Opened]);
        let mut said = step(&mut writer);
        let bytes = dump_all(store);
        let tried = step(&mut misuser);
        assert_eq!(tried.len(), answers.len());
        for (outcome, answer) in tried.iter().zip(*answers) {
            let (Said::Refused(_, text) | Said::Failed(text)) = outcome else {
                panic!("misuse {number}: {outcome:?}");
            };
            assert!(text.contains(answer), "misuse {number}: {text}");
        }
        assert_eq!(dump_all(store), bytes, "misuse {number}");
        said.extend(step(&mut writer));
        let by_town = Some(index.space());
        let places =
            Places { sales: new.sales.space().clone(), totals: new.totals.space(), by_town };
        assert_eq!(faults(store, change, &before, &places, &[said, Vec::new()]), [""; 0]);
    }
}

mod on_lmdb {
    use super::program::lmdb;

    fn with_store(law: impl Fn(&keyloom::Lmdb, &[String])) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_str().unwrap().to_owned();
        law(&lmdb(&path), &["lmdb".into(), path]);
    }

    #[test]
    fn every_pair_is_refused_or_right() {
        with_store(super::every_pair_is_refused_or_right);
    }

    #[test]
    fn bypasses_are_caught() {
        with_store(super::bypasses_are_caught);
    }

    #[test]
    fn misuses_are_refused() {
        with_store(super::misuses_are_refused);
    }
}

keyloom_testing::postgres! {
mod on_postgres {
    use keyloom_testing::servers::stores::postgres::Postgres;

    use keyloom_testing::servers::stores::{fresh_name, postgres};

    fn with_store(law: impl Fn(&Postgres, &[String])) {
        let Some(server) = postgres::address() else { return };
        let table = fresh_name();
        let store = Postgres::options().table(&table).open(&server).unwrap();
        law(&store, &["postgres".into(), server, table]);
        keyloom_testing::laws::clear(&store);
    }

    #[test]
    fn every_pair_is_refused_or_right() {
        with_store(super::every_pair_is_refused_or_right);
    }

    #[test]
    fn bypasses_are_caught() {
        with_store(super::bypasses_are_caught);
    }

    #[test]
    fn misuses_are_refused() {
        with_store(super::misuses_are_refused);
    }
}
}
