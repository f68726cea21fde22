//! Runs the tour as users do: as a program with a command line.
#![cfg(all(feature = "documents", feature = "graph", feature = "locking", feature = "text"))]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod formats;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The arguments that name an LMDB store.
fn lmdb(directory: &Path) -> String {
    format!("lmdb:{}", directory.display())
}

fn tour(arguments: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tour")).args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn fails_with(arguments: &[&Path], words: &[&str]) {
    let output = tour(arguments);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(words.iter().all(|word| said.contains(word)), "{words:?} are not all in: {said}");
    assert!(!said.contains("panicked"), "{said}");
}

/// The keys that the answer to a question reads; the question is found by its end.
fn keys_read(text: &str, question: &str) -> u64 {
    let mut lines = text.lines().skip_while(|line| !line.ends_with(question));
    let cost = lines.find(|line| line.contains(" ms;")).unwrap();
    let read = cost.split([';', ',']).find_map(|count| count.trim().strip_suffix(" keys read"));
    read.unwrap().parse().unwrap()
}

/// Runs the tour and checks its answers. The expected values come from commands such as `zcat
/// cities.csv.gz | grep ',FR,' | wc -l`. Returns the answers and the output.
fn answers_are_right(address: &str) -> (Vec<String>, String) {
    let output = tour(&["--verbose".as_ref(), "--store".as_ref(), address.as_ref()]);
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    for answer in [
        "8,836 cities",
        "687 cities",
        "32 cities",
        "Los Angeles (US), 3,971,883 inhabitants",
        "Anaheim (US), 350,742 inhabitants",
        "22 places",
        "62 of 10,000 strikes",
        "Unknown bird - medium: 36",
        "1,241,798 dollars, 46,924",
        "id 3367: 304,926 dollars",
        "Climb: 183,001 dollars in 199 strikes",
        "California: 61",
        "CR, region 08: 335,007",
        "by_name is readable: index of version 1, format 1",
        "Oceania: 27",
        "246 countries",
        "Shanghai (CN), 22,315,474 inhabitants",
        "53,811,747 in 8,836 cities",
        "3 of 8,836",
        "984,478 keys",
        "5 changes, sum of the populations 2,940,717",
        "ADK → ANC → ATL → EYW",
        "BOI → SLC → ATL → EYW",
        "42 ways of 3 flights",
        "ATL: 0.0597",
        "1,334 cities",
        "Waitangi (NZ): 19,464 km",
        "has children",
        "1 delivered, then 0",
        "waits for 0.5 to 1 s; 0 delivered now",
        "1 sent by an idle worker",
        "CH, DE, FR",
        "AT, CH, DE, FR, IT, LI, LU",
        "+FR +DE +AT -FR -DE +HU",
        "62 on the first day, 61 on the second",
        "East Los Angeles",
        "limit of 100 reads",
        "L'oiseau est un flamant rose",
        "dit le Lapin",
        "VA, NF, NU, PN, TK (by the index of continent, cities)",
        "5 countries",
        "tea, green, bancha, sencha, matcha",
        "265 airports in one or two flights",
        "29 airports from Adak",
        "5 groups of modularity 0.304; that of Adak has 103 airports",
        "42 routes from 544 bytes",
        "42 edges read, 42 stored",
        "246 airports",
        "40 paragraphs",
        "“*Off* with *her* *head*!” the Queen shouted",
        "“It _began_ with the *tea*,” the *Hatter* replied.",
        "The Queen’s Croquet-Ground: 4",
        "(frequency 1, length 5, average length 22.957)",
        "1.50  São Paulo",
        "0.50  Wrocław",
        "10 names",
        "san: 4, santo: 3",
        "san: 101, santa: 40",
        "98 cities in 26 countries",
        "Santo Domingo (DO), 2,201,941 inhabitants",
        "China: 18 cities",
        "India: 3 cities",
        "Melbourne (AU), 4,246,375 inhabitants",
        "fdb-relational-core/README.md",
        "Istanbul, Turkey: 14,804,116",
        "EU: 67,129",
        "Netherlands Antilles; Bouvet Island; Serbia and Montenegro",
        "1,915 places; the first is in Turkey; 1,915 copies are stale",
        "1,915 places; the first is in Türkiye; 0 copies are stale",
        "les Escaldes: 15,853",
        "2,377 cities",
        "Hanga Roa (CL): 2,698 km",
        "u0: 12,684",
        "4,539 files and directories",
        "docs/sphinx/source/ReleaseNotes.md",
        // The sixth to the tenth name in sorted order: GEMINI.md, LICENSE, README.md, SECURITY.md,
        // actions.
        "SECURITY.md",
        "DE: 1",
        "program 1: X on /\"regions\"/\"FR\"; unfinished work: merge regions",
        "session \"program 1\" holds X on",
        "finishes 1 work",
        "0 cities in Île-de-France",
        "its fencing token is greater",
        "refused: its lock is lost",
    ] {
        assert!(text.contains(answer), "{answer} is not in: {text}");
    }
    let polygon = "1,401 Swiss cities, and 190 beyond the border";
    assert_eq!(text.contains(polygon), cfg!(feature = "polygons"), "{text}");
    let [group, filter] = ["(the group)", "and a filter)"].map(|asked| keys_read(&text, asked));
    assert!(20 * group < filter, "{group} and {filter} keys: {text}");
    let loaded = text.contains("135,233 loaded");
    assert!(loaded != text.contains("in the store already"), "{text}");
    let is_answer = |line: &&str| line.starts_with("  ") && !line.contains(" ms;");
    let answers = text.lines().filter(is_answer).map(String::from);
    let answers = [format!("loaded: {loaded}")].into_iter().chain(answers).collect();
    (answers, text)
}

/// The first run loads the data, the second run does not, and both print the same answers. Returns
/// the output of the first run.
fn runs_twice_on(address: &str) -> String {
    let (first, output) = answers_are_right(address);
    let (second, _) = answers_are_right(address);
    assert_eq!((&*first[0], &*second[0]), ("loaded: true", "loaded: false"));
    assert_eq!(first[1..], second[1..]);
    output
}

/// Damaged files of cities. Each is loaded into `store` up to the damage, and the error names the
/// file.
fn damaged_data_files_are_named(directory: &Path, address: &str) {
    let data = directory.join("data");
    fs::create_dir(&data).unwrap();
    let file = data.join("cities.csv.gz");
    let with_data: [&Path; 4] = ["--data".as_ref(), &data, "--store".as_ref(), address.as_ref()];
    fails_with(&with_data, &["cities.csv.gz"]);
    let good = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/cities.csv.gz");
    let good = fs::read(good).unwrap();
    fs::write(&file, &good[..good.len() / 2]).unwrap();
    fails_with(&with_data, &["cities.csv.gz", "damaged"]);
    let mut flipped = good.clone();
    flipped[good.len() / 3] ^= 0xFF;
    fs::write(&file, flipped).unwrap();
    fails_with(&with_data, &["cities.csv.gz", "damaged"]);
    fs::write(&file, "geoname_id,name\n1,x\n").unwrap();
    fails_with(&with_data, &["cities.csv.gz", "damaged"]);
}

#[test]
fn it_runs_on_lmdb_after_damaged_data_and_loads_once() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("store");
    // The records that were loaded from a truncated file do no harm.
    damaged_data_files_are_named(directory.path(), &lmdb(&store));
    let first = runs_twice_on(&lmdb(&store));
    assert!(first.contains(store.to_str().unwrap()), "the directory is printed");
    formats::the_summary_is_short_and_plain(&store);
    formats::every_step_is_a_line_of_json(&store);
}

#[test]
fn it_runs_in_memory() {
    assert_eq!(answers_are_right("memory:").0[0], "loaded: true");
}

#[cfg(feature = "postgres")]
#[test]
fn it_runs_on_postgres_and_loads_once() {
    let Some(store) = keyloom_testing::servers::stores::postgres::open() else { return };
    let address = keyloom_testing::servers::stores::postgres::address().unwrap();
    let table = store.place().rsplit(' ').next().unwrap().to_owned();
    runs_twice_on(&format!("{address}?table={table}"));
}

#[cfg(feature = "etcd")]
#[test]
fn it_runs_on_etcd_and_loads_once() {
    let Some(store) = keyloom_testing::servers::stores::etcd::open() else { return };
    runs_twice_on(store.place());
}

#[test]
fn an_unknown_flag_is_refused_and_help_is_given() {
    fails_with(&["--fast".as_ref()], &["--fast", "--help"]);
    fails_with(&["spatial".as_ref()], &["\"spatial\"", "./spatial", "--step spatial", "--help"]);
    // The directory exists, but is not a store: the tests run in the directory of the crate.
    fails_with(&["src".as_ref()], &["no store in \"src\"", "./src"]);
    let two: [[&Path; 3]; 2] =
        ["--store", "a:c"].map(|last| ["a:b".as_ref(), last.as_ref(), "a:d".as_ref()]);
    fails_with(&two[0], &["an address already, \"a:b\""]);
    fails_with(&two[1], &["an address already, \"a:b\""]);
    fails_with(&["--json".as_ref(), "--verbose".as_ref()], &["--verbose and --json exclude"]);
    fails_with(&["a:b".as_ref()], &["a:", "./data", "lmdb:, redb:", "--help"]);
    fails_with(
        &["--store".as_ref(), "memory:".as_ref(), "--step".as_ref(), "indexes".as_ref()],
        &["no step \"indexes\"", "--list", "index table"],
    );
    let help = tour(&["--help".as_ref()]);
    assert!(help.status.success() && said(&help).contains("Usage"));
    let list = said(&tour(&["--list".as_ref()]));
    let step = "how a schema changes\tChange a record type, an index, a schema\tbook/src/schema_changes.md";
    assert!(list.lines().any(|line| line == step), "{list}");
    let list = said(&tour(&["--list".as_ref(), "--json".as_ref()]));
    assert!(list.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{list}");
}

#[test]
fn a_path_that_cannot_be_written_is_named() {
    fails_with(
        &["--store".as_ref(), "lmdb:/dev/null/directory".as_ref()],
        &["/dev/null", "cannot be made"],
    );
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "text").unwrap();
    fails_with(&["--store".as_ref(), lmdb(&file).as_ref()], &["not a keyloom store"]);
}

/// The address is a directory without `lmdb:`, whose parents do not exist.
#[test]
fn one_step_runs_alone_in_a_new_directory() {
    let directory = tempfile::tempdir().unwrap();
    one_step_runs_alone_on(&directory.path().join("new/store"));
}

/// A backend of another crate, by its address.
#[test]
fn one_step_runs_alone_on_redb() {
    let directory = tempfile::tempdir().unwrap();
    one_step_runs_alone_on(format!("redb:{}/new/file", directory.path().display()).as_ref());
}

fn one_step_runs_alone_on(store: &Path) {
    let step: [&Path; 3] = ["--verbose".as_ref(), "--step".as_ref(), "schema".as_ref()];
    let run = || tour(&[&step[..], &[store]].concat());
    for loads in [true, false] {
        let output = run();
        let text = said(&output);
        assert!(output.status.success() && text.contains("Oceania: 27"), "{text}");
        assert!(!text.contains("687 cities"), "answers of another step: {text}");
        assert_eq!(text.contains("252 records rewritten"), loads, "{text}");
        let table = text.lines().rev().find(|line| line.starts_with("how a schema changes"));
        assert_eq!(table.unwrap().split('\t').nth(4), Some("2"), "two answers: {text}");
    }
}

/// The reader closes the pipe early, as in `tour | head -1`.
#[test]
fn a_closed_pipe_ends_the_tour_without_an_error() {
    let mut tour = Command::new(env!("CARGO_BIN_EXE_tour"))
        .args(["--store", "memory:"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(tour.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let output = tour.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(line.starts_with("store"), "{line}");
    assert!(output.status.success() && !printed.contains("panicked"), "{printed}");
}
