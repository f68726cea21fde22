//! Eight writers on the same keys, and a checker that searches for cycles.

use keyloom_list_append::{campaign, transactions, weakened};
use keyloom_mutant_stores::Weakness;

use crate::cluster::fresh;

const WRITERS: usize = 8;

#[test]
fn foundationdb_is_serializable() {
    let store = fresh!();
    campaign(&*store, transactions(20_000), WRITERS).assert_clean();
}

#[test]
fn weakened_isolation_is_caught() {
    let store = fresh!();
    for weakness in [Weakness::LostUpdates, Weakness::WriteSkew, Weakness::Phantoms] {
        weakened::is_caught(store.clone(), weakness, 4_000, WRITERS);
    }
}
