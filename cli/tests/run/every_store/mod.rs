//! Every command on every engine: the output and the entries are those on LMDB.
//!
//! Tests on PostgreSQL and etcd need the features `postgres` and `etcd`, and servers:
//! `tests/servers/with.sh cargo test -p keyloom-cli --features postgres,etcd every_store`. Without
//! servers, they are skipped.

mod contents;
mod moving;
mod pair;
mod reading;
mod serving;
mod writing;

use std::collections::BTreeSet;

use crate::engines::{Engine, entries, set};
use crate::support::fine;
use contents::fill;
use pair::{Pair, difference};

macro_rules! engines {
    ($($(#[$feature:meta])? $test:ident: $engine:ident;)*) => {$(
        $(#[$feature])?
        #[test]
        fn $test() {
            every_command_answers_as_on_lmdb(Engine::$engine);
        }
    )*};
}

engines! {
    commands_on_redb_answer_as_on_lmdb: Redb;
    commands_on_fjall_answer_as_on_lmdb: Fjall;
    #[cfg(feature = "postgres")]
    commands_on_postgres_answer_as_on_lmdb: Postgres;
    #[cfg(feature = "etcd")]
    commands_on_etcd_answer_as_on_lmdb: Etcd;
}

fn every_command_answers_as_on_lmdb(engine: Engine) {
    // The locks expire after a while, so the commands that read come first.
    let Some(mut pair) = Pair::new(engine, fill) else { return };
    reading::all(&mut pair);
    serving::all(&mut pair);
    moving::all(&mut pair);
    writing::all(&mut pair);
    let missing: Vec<_> = commands().difference(&pair.seen).cloned().collect();
    assert_eq!(missing, [""; 0], "commands that no test runs on {engine:?}");
}

/// All commands, as the help lists them.
fn commands() -> BTreeSet<String> {
    let help = fine(&["--help"]);
    let (_, rest) = help.split_once("Commands:\n").unwrap();
    let (listed, _) = rest.split_once("\n\n").unwrap();
    let names = listed.lines().filter_map(|line| line.strip_prefix("  "));
    let names = names.filter(|line| !line.starts_with(' '));
    let names = names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned);
    let names: BTreeSet<_> = names.filter(|name| name != "help").collect();
    assert!(names.len() >= 24, "{names:?}");
    names
}

/// The comparison of two stores finds a changed value, a removed key and an added key.
#[test]
fn a_store_that_answers_differently_is_found() {
    let pair = Pair::new(Engine::Redb, fill).unwrap();
    let scan = ["scan", "STORE", "--full", "--as=hex", "--json"];
    let differs = || {
        let [expected, found] = pair.both(&scan, "");
        let address = pair.other.address("STORE");
        let is_other = entries(pair.lmdb.address("STORE")) != entries(address);
        let differs = difference(&expected, &found).is_some();
        assert_eq!(differs, is_other, "the output and the library disagree");
        differs
    };
    assert!(!differs());
    let (key, value) = entries(pair.other.address("STORE")).pop_last().unwrap();
    let change = |key: &[u8], value: Option<&[u8]>| set(pair.other.address("STORE"), key, value);
    for new in [None, Some(&b"other"[..])] {
        change(&key, new);
        assert!(differs());
        change(&key, Some(&value));
        assert!(!differs());
    }
    change(b"\xFF added", Some(b""));
    assert!(differs());
}

/// The comparison of two stores finds a missing entry, whatever kind of query reads it.
#[cfg(feature = "explore")]
#[test]
fn a_query_that_answers_differently_is_found() {
    let pair = Pair::new(Engine::Redb, fill).unwrap();
    for [name, query] in crate::querying::QUERIES {
        let arguments = ["query", "STORE", name, query, "-n", "100000", "--json"];
        let differs = || {
            let [expected, found] = pair.both(&arguments, "");
            difference(&expected, &found).is_some()
        };
        assert!(!differs(), "{name}");
        let all = pair.lmdb.run(&arguments, "").out;
        let first: serde_json::Value = serde_json::from_str(all.lines().next().unwrap()).unwrap();
        let entry = first["entry"].as_str().or(first["key"].as_str()).unwrap();
        let get = pair.lmdb.run(&["get", "STORE", entry, "--json"], "").out;
        let get: serde_json::Value = serde_json::from_str(&get).unwrap();
        let hex = get["key_hex"].as_str().unwrap();
        let of_pair = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let key: Vec<u8> = (0..hex.len()).step_by(2).map(of_pair).collect();
        let address = pair.other.address("STORE");
        let value = entries(address)[&key].clone();
        set(address, &key, None);
        assert!(differs(), "{name}");
        set(address, &key, Some(&value));
        assert!(!differs(), "{name}");
    }
}
