//! Eight writers on the same keys, and a checker that searches for cycles.

use keyloom_mutant_stores::Weakness;

use crate::server::fresh;
use keyloom_list_append::{campaign, transactions, weakened};

const WRITERS: usize = 8;

#[test]
fn etcd_is_serializable() {
    let (store, _cleanup) = fresh!();
    campaign(&store, transactions(20_000), WRITERS).assert_clean();
}

#[test]
fn weakened_isolation_is_caught() {
    let (store, _cleanup) = fresh!();
    for weakness in [Weakness::LostUpdates, Weakness::WriteSkew, Weakness::Phantoms] {
        weakened::is_caught(store.clone(), weakness, 4_000, WRITERS);
    }
}
