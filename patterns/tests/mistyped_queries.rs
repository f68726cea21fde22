//! Queries with wrong types do not compile, and the error names the part.
//!
//! All cases are functions of one crate, which is checked once: 43 s the first time, less than a
//! second afterwards. `trybuild` takes 54 s and compares whole messages, which list implementations
//! and change with the compiler.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Parts: `team` (u64, Desc<i64>); `name` String; `tag` (String, Option<u8>); `hash` Vec<u8>;
/// `price` f32. The keys of `orders` are (u64, u32).
const PRELUDE: &str = "
use keyloom::{Desc, Order, Reader};
use keyloom_patterns::{Index, RankedIndex, Table, Totals, starting_with, within};
type Of<P> = Index<u32, String, P>;
struct I { team: Of<(u64, Desc<i64>)>, name: Of<String>, tag: Of<(String, Option<u8>)>, hash: Of<Vec<u8>>, price: Of<f32>,
  ranked: RankedIndex<u32, String, (u64, Desc<i64>)>, total: Totals<u32, String, (String, u64)>,
  orders: Table<(u64, u32), String> }
";

/// A query and its compile error, which is empty if the query compiles.
const CASES: &[(&str, &str)] = &[
    // Valid queries: prefixes, ranges, borrowed and owned values, literals of each type.
    ("i.team.count(s, ..)", ""),
    ("i.team.count(s, 1)", ""),
    ("i.team.count(s, (1, Desc(50)))", ""),
    ("i.team.count(s, within((1, Desc(50))..))", ""),
    ("i.name.count(s, \"ada\")", ""),
    ("i.name.count(s, &String::new())", ""),
    ("i.name.count(s, starting_with(\"a\"))", ""),
    ("i.name.count(s, within(\"a\"..=\"c\"))", ""),
    ("i.tag.count(s, (\"a\", Some(3)))", ""),
    ("i.tag.count(s, (\"a\", None::<u8>))", ""),
    ("i.hash.count(s, b\"abc\")", ""),
    ("i.price.count(s, 1.5)", ""),
    ("i.name.get(s, \"ada\")", ""),
    ("i.team.untyped().count(s, (1, 50, \"any\"))", ""),
    ("i.team.query().prefix((1, Desc(50))).count(s)", ""),
    ("i.team.query().range(1..7).keys(s)", ""),
    ("i.name.query().range(\"a\"..=\"c\").reverse().limit(3).after(None).page(s)", ""),
    ("i.ranked.rank(s, 1, (1, Desc(50)))", ""),
    ("i.total.get(s, (\"a\", 7))", ""),
    ("i.total.sum(s, \"a\")", ""),
    ("i.team.first_of_each(s, 1, 1)", ""),
    ("i.orders.count(s, 7)", ""),
    ("i.orders.range(s, (7, 1))", ""),
    ("i.orders.page(s, within(7..), 10, None)", ""),
    // Queries that compiled in earlier versions and found nothing.
    ("i.orders.count(s, \"7\")", "mismatched parts: `&str` does not select from `(u64, u32)`"),
    (
        "i.orders.range(s, (7, \"1\"), Order::Ascending)",
        "mismatched part: expected `u32`, found `str`",
    ),
    (
        "i.orders.page(s, within(7_u32..), 10, None)",
        "mismatched parts: `Within<u32>` does not select from `(u64, u32)`",
    ),
    ("i.team.count(s, (1, 50))", "mismatched part: expected `Desc<i64>`, found `{integer}`"),
    ("i.team.count(s, \"1\")", "mismatched parts: `&str` does not select from `(u64, Desc<i64>)`"),
    ("i.team.count(s, 1.0)", "mismatched parts: `{float}` does not select from `(u64, Desc<i64>)`"),
    ("i.team.count(s, 1_u32)", "mismatched parts: `u32` does not select from `(u64, Desc<i64>)`"),
    ("i.team.count(s, (1_u32, Desc(50)))", "mismatched part: expected `u64`, found `u32`"),
    ("i.team.count(s, (1, Desc(\"50\")))", "mismatched part: expected `i64`, found `str`"),
    (
        "i.team.count(s, within((1, 50)..))",
        "mismatched parts: `Within<({integer}, {integer})>` does not select from `(u64, Desc<i64>)`",
    ),
    ("i.team.range(s, (1, 50))", "mismatched part: expected `Desc<i64>`, found `{integer}`"),
    ("i.team.query().prefix((1, 50))", "mismatched part: expected `Desc<i64>`, found `{integer}`"),
    (
        "i.team.query().prefix(\"1\")",
        "mismatched parts: `&str` is not a prefix of `(u64, Desc<i64>)`",
    ),
    ("i.team.query().range((1, 50)..)", "mismatched part: expected `Desc<i64>`, found `{integer}`"),
    (
        "i.team.query().starting_with((1, \"5\"))",
        "mismatched part: expected `Desc<i64>`, found `str`",
    ),
    ("i.name.query().range(1..7)", "mismatched parts: `{integer}` is not a prefix of `String`"),
    ("i.ranked.rank(s, 1, (1, 50))", "mismatched part: expected `Desc<i64>`, found `{integer}`"),
    (
        "i.ranked.count(s, \"1\")",
        "mismatched parts: `&str` does not select from `(u64, Desc<i64>)`",
    ),
    ("i.total.get(s, \"a\")", "mismatched part: expected `(String, u64)`, found `str`"),
    ("i.total.get(s, (\"a\", \"7\"))", "mismatched part: expected `u64`, found `str`"),
    ("i.total.sum(s, 7)", "mismatched parts: `{integer}` does not select from `(String, u64)`"),
    ("i.total.range(s, 7)", "mismatched parts: `{integer}` does not select from `(String, u64)`"),
    (
        "i.team.first_of_each(s, \"1\", 1, Order::Ascending)",
        "mismatched parts: `&str` does not select from `(u64, Desc<i64>)`",
    ),
    (
        "i.team.grouped_by(1).last_of_each(s, (1, 50))",
        "mismatched part: expected `Desc<i64>`, found `{integer}`",
    ),
    ("i.ranked.nth(s, (1, 50), 3)", "mismatched part: expected `Desc<i64>`, found `{integer}`"),
    ("i.team.get(s, 1)", "mismatched part: expected `(u64, Desc<i64>)`, found `{integer}`"),
    ("i.name.count(s, 7)", "mismatched parts: `{integer}` does not select from `String`"),
    (
        "i.name.count(s, starting_with(7))",
        "mismatched parts: `StartingWith<{integer}>` does not select from `String`",
    ),
    ("i.name.count(s, b\"ada\")", "mismatched parts: `&[u8; 3]` does not select from `String`"),
    ("i.name.get(s, 'a')", "mismatched part: expected `String`, found `char`"),
    ("i.tag.count(s, (\"a\", 3))", "mismatched part: expected `Option<u8>`, found `{integer}`"),
    ("i.hash.count(s, \"abc\")", "mismatched parts: `&str` does not select from `Vec<u8>`"),
    ("i.price.count(s, 1.5_f64)", "mismatched parts: `f64` does not select from `f32`"),
];

#[test]
fn queries_of_a_wrong_type_do_not_compile() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mistyped");
    write_crate(&dir, Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap());
    let output = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "--offline", "--message-format=short"])
        .current_dir(&dir)
        .env("CARGO_TARGET_DIR", dir.join("target"))
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    let printed = printed.replace("keyloom::", "").replace("std::string::", "");
    let errors = errors_by_line(&printed);
    let first = PRELUDE.lines().count() + 1;
    assert!(errors.keys().all(|line| *line >= first), "{printed}");
    for (line, (query, wanted)) in (first..).zip(CASES) {
        let found = errors.get(&line).map_or("", String::as_str);
        let is_wanted = found.starts_with(wanted) && found.is_empty() == wanted.is_empty();
        assert!(is_wanted, "{query}\nwanted: {wanted}\nfound:  {found}\n{printed}");
    }
}

fn write_crate(dir: &Path, keyloom: &Path) {
    let patterns = keyloom.join("patterns");
    fs::create_dir_all(dir.join("src")).unwrap();
    let manifest = format!(
        "[package]\nname = \"mistyped\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n\
         keyloom = {{ path = {keyloom:?}, default-features = false }}\n\
         keyloom-patterns = {{ path = {patterns:?} }}\n"
    );
    fs::write(dir.join("Cargo.toml"), manifest).unwrap();
    // The locked versions of the workspace, which are available offline.
    fs::copy(keyloom.join("Cargo.lock"), dir.join("Cargo.lock")).unwrap();
    let cases = CASES.iter().enumerate();
    let cases = cases.map(|(n, (query, _))| {
        format!("pub fn case_{n}(i: &I, s: &impl Reader) {{ drop({query}); }}\n")
    });
    fs::write(dir.join("src/lib.rs"), PRELUDE.to_owned() + &cases.collect::<String>()).unwrap();
}

/// The first error of each line of `src/lib.rs:9:40: error[E0277]: text: label`.
fn errors_by_line(printed: &str) -> BTreeMap<usize, String> {
    let mut errors = BTreeMap::new();
    for error in printed.lines().filter_map(|line| line.strip_prefix("src/lib.rs:")) {
        let (line, rest) = error.split_once(':').unwrap();
        if let Some((_, text)) = rest.split_once("error[E0277]: ") {
            errors.entry(line.parse().unwrap()).or_insert(text.to_owned());
        }
    }
    errors
}
