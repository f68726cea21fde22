//! The keys of the records of random tests.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use keyloom_testing::ids::number;

/// Random tests have fewer records than this number. Further records of larger tests have other
/// keys.
const FIRST: u32 = 200;
const OTHERS: u32 = 0x1_0000;

static INDEXES: LazyLock<BTreeMap<u32, u32>> =
    LazyLock::new(|| (0..FIRST).map(|n| (key(n), n)).collect());

/// The key of the `n`-th record.
pub fn key(n: u32) -> u32 {
    if n < FIRST { number(n.into()) as u32 } else { OTHERS + n }
}

/// The index of the record with this key.
pub fn index_of(key: u32) -> u32 {
    INDEXES.get(&key).copied().unwrap_or_else(|| key - OTHERS)
}
