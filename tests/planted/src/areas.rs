//! The area of each file, and the test programs that are most likely to catch a bug in it.

/// An area, and the path prefixes of its files.
const AREAS: &[(&str, &[&str])] = &[
    ("lmdb", &["src/lmdb/"]),
    ("memory", &["src/memory/"]),
    ("remote", &["backends/remote/", "backends/postgres/", "backends/etcd/"]),
    (
        "store",
        &[
            "src/any.rs",
            "src/atomic.rs",
            "src/dynamic.rs",
            "src/faulty.rs",
            "src/metered.rs",
            "src/retry.rs",
            "src/store.rs",
            "src/store/",
            "src/value/",
            "src/error/",
            "src/transaction_state.rs",
            "src/writer_slot.rs",
            "src/deadline.rs",
            "src/limits.rs",
        ],
    ),
    (
        "derived",
        &[
            "patterns/kit/src/derived/",
            "patterns/tables/src/derived/",
            "patterns/tables/src/table",
            "patterns/tables/src/index/",
            "patterns/tables/src/schema/",
        ],
    ),
    ("patterns", &["patterns/"]),
];

/// Measurements and drawings, which have no wrong result that a test could detect.
const LEFT_OUT: &[&str] = &["/tests/", "tests.rs", "statistics"];

/// The area of a file, if it has one.
pub fn of(path: &str) -> Option<&'static str> {
    if !path.ends_with(".rs") || LEFT_OUT.iter().any(|part| path.contains(part)) {
        return None;
    }
    let begins = |beginnings: &&(_, &[&str])| beginnings.1.iter().any(|b| path.starts_with(b));
    AREAS.iter().find(begins).map(|(area, _)| *area)
}

/// A part of a path, and the test programs that run first for it.
const AFFINITY: &[(&str, &[&str])] = &[
    ("src/lmdb/", &["lmdb", "conformance", "lmdb_file", "differential"]),
    ("src/memory/", &["conformance", "differential", "transact", "keyloom"]),
    ("backends/remote/", &["postgres", "etcd", "conformance"]),
    ("backends/postgres/", &["postgres"]),
    ("backends/etcd/", &["etcd"]),
    ("patterns/kit/", &["tables", "keyloom_kit", "schema"]),
    ("patterns/tables/src/schema/", &["schema", "tables"]),
    ("patterns/tables/src/derived/", &["tables", "schema"]),
    ("patterns/tables/", &["tables", "keyloom_tables"]),
    ("patterns/trees/src/path/", &["path", "keyloom_trees"]),
    ("patterns/trees/", &["models", "keyloom_trees"]),
    ("patterns/spatial/", &["spatial", "keyloom_spatial"]),
    ("patterns/bitmaps/", &["bitmaps", "keyloom_bitmaps"]),
    ("src/", &["conformance", "keyloom", "transact", "differential"]),
];

/// The position of a test program in the order for a bug in `path`: 0 runs first.
pub fn rank(path: &str, program: &str) -> usize {
    let known = AFFINITY.iter().find(|(part, _)| path.contains(part));
    let place = |programs: &[&str]| programs.iter().position(|name| *name == program);
    known.and_then(|(_, programs)| place(programs)).unwrap_or(usize::MAX)
}
