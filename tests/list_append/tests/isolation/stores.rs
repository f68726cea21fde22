//! The campaign on the stores of this crate.

use keyloom::Memory;

use keyloom_list_append::{campaign, transactions};

const TRANSACTIONS: usize = 20_000;
const WRITERS: usize = 8;

#[test]
fn memory_with_one_writer_at_a_time_is_serializable() {
    campaign(&Memory::new(), transactions(TRANSACTIONS), WRITERS).assert_clean();
}

#[test]
fn optimistic_memory_is_serializable() {
    let store = Memory::builder().optimistic(true).build();
    campaign(&store, transactions(TRANSACTIONS), WRITERS).assert_clean();
}

#[test]
fn lmdb_is_serializable() {
    use keyloom::lmdb::Durability;
    let directory = tempfile::tempdir().unwrap();
    // No crash of the machine is tested here, so no commit needs a sync.
    let options = keyloom::Lmdb::options().durability(Durability::MayLoseStore);
    let store = options.open(directory.path()).unwrap();
    campaign(&store, transactions(TRANSACTIONS), WRITERS).assert_clean();
}
