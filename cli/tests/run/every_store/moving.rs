//! `copy`, `diff`, `export` and `import`.

use serde_json::Value;

use super::pair::{Pair, Side};
use crate::engines::{Entries, empty, entries, write};
use crate::support::{fine, run};

pub fn all(pair: &mut Pair) {
    copy_and_diff(pair);
    between_engines(pair);
    export_and_import(pair);
}

fn copy_and_diff(pair: &mut Pair) {
    if !pair.other.engine.opens_missing() {
        assert_eq!(pair.other.run(&["copy", "STORE", "COPY", "--write"], "").code, 2);
    }
    assert_eq!(pair.same(&["copy", "STORE", "COPY", "--create"]).code, 2);
    let copied = pair.fine(&["copy", "STORE", "COPY", "--create", "--write", "--json"]);
    let copied: Value = serde_json::from_str(&copied).unwrap();
    assert_eq!(pair.entries("COPY"), pair.entries("STORE"));
    assert_eq!(copied["copied"], pair.entries("COPY").len());
    assert_eq!(pair.fine(&["diff", "STORE", "COPY"]), "");

    pair.fine(&["rm", "COPY", "(\"numbers\", 5)", "--write"]);
    pair.fine(&["put", "COPY", "(\"numbers\", 6)", "other", "--write"]);
    pair.fine(&["put", "COPY", "(\"numbers\", 6, 1)", "new", "--write"]);
    let ran = pair.same(&["diff", "STORE", "COPY"]);
    let expected = "- (\"numbers\", 5)\n~ (\"numbers\", 6)\n+ (\"numbers\", 6, 1)\n";
    assert_eq!((ran.code, &*ran.out), (1, expected));
    assert_eq!(pair.same(&["diff", "COPY", "STORE", "--limit=1", "--json"]).code, 1);
    let refused = pair.same(&["copy", "STORE", "COPY", "--write"]);
    assert!(refused.code == 2 && refused.err.contains("differ"), "{}", refused.err);

    // A copy that was interrupted: the second half of the entries is missing.
    let all = pair.entries("STORE");
    let half: Entries = all.iter().take(all.len() / 2).map(owned).collect();
    for side in [&pair.lmdb, &pair.other] {
        empty(side.address("COPY"));
        write(side.address("COPY"), &half);
    }
    let continued = pair.same(&["copy", "STORE", "COPY", "--write"]);
    assert!(continued.code == 0 && continued.err.contains("continues after"), "{}", continued.err);
    assert_eq!(pair.entries("COPY"), all);
}

fn owned((key, value): (&Vec<u8>, &Vec<u8>)) -> (Vec<u8>, Vec<u8>) {
    (key.clone(), value.clone())
}

/// From LMDB to the other engine and back.
fn between_engines(pair: &mut Pair) {
    let of = |side: &Side, name: &str| side.address(name).to_owned();
    let (from, to) = (of(&pair.lmdb, "STORE"), of(&pair.other, "IMPORT"));
    assert_eq!(run(&["copy", &from, &to, "--create", "--write"]).code, 0);
    assert_eq!(entries(&to), entries(&from));
    assert_eq!(fine(&["diff", &from, &to]), "");
    let back = of(&pair.lmdb, "IMPORT");
    fine(&["copy", &to, &back, "--create", "--write"]);
    assert_eq!(entries(&back), entries(&from));
    assert_eq!(fine(&["diff", &to, &back]), "");
    fine(&["put", &back, "(\"numbers\", 7)", "other", "--write"]);
    let differs = run(&["diff", &to, &back]);
    assert_eq!((differs.code, &*differs.out), (1, "~ (\"numbers\", 7)\n"), "{}", differs.err);
    [&pair.lmdb, &pair.other].iter().for_each(|side| empty(side.address("IMPORT")));
}

fn export_and_import(pair: &mut Pair) {
    let text = pair.fine(&["export", "STORE"]);
    assert_eq!(values(&text), pair.entries("STORE").into_values().collect::<Vec<_>>());
    pair.fine(&["export", "STORE", "people"]);
    pair.fine(&["export", "STORE", "--decoded"]);
    assert_eq!(pair.same(&["export", "STORE", "nothing"]).code, 2);

    let import = ["import", "IMPORT", "--write", "--create"];
    let refused = pair.same_with_input(&import[..2], &text);
    assert!(refused.code == 2 && refused.err.contains("--write"), "{}", refused.err);
    let half: String = text.split_inclusive('\n').take(700).collect();
    truncated(pair, &import, &half);
    // The rest, since some entries may be there.
    for ran in pair.both(&import, &text) {
        assert_eq!(ran.code, 0, "{}", ran.err);
    }
    assert_eq!(pair.entries("IMPORT"), pair.entries("STORE"));
    let again = pair.same_with_input(&import, &text);
    assert!(again.out.contains("0 added, 0 replaced"), "{}{}", again.out, again.err);
    [&pair.lmdb, &pair.other].iter().for_each(|side| empty(side.address("IMPORT")));
    assert_eq!(pair.same_with_input(&import, &text).code, 0);
    assert_eq!(pair.entries("IMPORT"), pair.entries("STORE"));
}

/// The number of entries that were imported is a multiple of those of a transaction, of which each
/// engine has its own number.
fn truncated(pair: &Pair, import: &[&str], text: &str) {
    let [expected, found] = pair.both(import, text).map(|ran| {
        let (why, imported) = ran.err.rsplit_once("; ").unwrap();
        (ran.code, why.to_owned(), imported.split(' ').next().unwrap().to_owned())
    });
    assert_eq!((found.0, &found.1), (expected.0, &expected.1));
    assert!(found.0 == 2 && found.1.contains("truncated"), "{found:?}");
    let all = entries(pair.other.address("STORE"));
    for (side, (.., imported)) in [(&pair.lmdb, expected), (&pair.other, found)] {
        let written = entries(side.address("IMPORT"));
        assert_eq!(written.len().to_string(), imported, "{:?}", side.engine);
        assert!(written.iter().eq(all.iter().take(written.len())));
    }
}

/// The values of an export.
fn values(text: &str) -> Vec<Vec<u8>> {
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let hex = lines.filter_map(|line| line["value_hex"].as_str().map(str::to_owned));
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    hex.map(|hex| hex.as_bytes().chunks(2).map(byte).collect()).collect()
}
