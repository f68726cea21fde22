//! Records with versions, and counters.

use keyloom::{Cost, Memory, Metered, Result, Store, Subspace};
use keyloom_patterns::VersionedTable;
use keyloom_patterns::versioned::Counters;

use super::Table;

type Txn<'t> = <Metered<Memory> as Store>::Transaction<'t>;

/// A transaction on a table with one record, of version 1, and a counter.
fn cost(
    mut write: impl FnMut(&VersionedTable<u32, Vec<u32>>, &Counters<u32>, &mut Txn<'_>) -> Result<()>,
) -> (Result<()>, Cost) {
    let store = Metered::new(Memory::new());
    let table = VersionedTable::new(&Subspace::new("records"));
    let counters = Counters::new(&Subspace::new("counters"));
    store
        .transact(|txn| {
            table.create(txn, &1, vec![7])?;
            counters.add(txn, &1, 5)
        })
        .unwrap();
    store.measure(|store| store.transact(|txn| write(&table, &counters, txn)))
}

#[test]
fn the_table_of_versions_states_its_costs() {
    let mut table = Table::of("versioned.md");
    let mut compare = |row: &str, case: usize, (done, cost): (Result<()>, Cost)| {
        assert_eq!(done.is_ok(), row != "refused", "{row}");
        table.compare(row, case, &[], &cost);
    };
    let store = Metered::new(Memory::new());
    let read = VersionedTable::<u32, u32>::new(&Subspace::new("records"));
    store.transact(|txn| read.create(txn, &1, 7)).unwrap();
    let snapshot = store.snapshot().unwrap();
    let (found, get) = store.measure(|_| read.get(&snapshot, &1));
    compare("`get`", 0, (found.map(drop), get));

    let existing = "`update`, `compare_and_swap`, `modify`, `append` of an existing record";
    let old = vec![7];
    let swap = |key, expected: Option<&Vec<u32>>| {
        cost(|records, _, txn| {
            records.compare_and_swap(txn, &key, expected, Some(vec![8])).map(drop)
        })
    };
    let modify = |key| {
        cost(move |records, _, txn| records.modify(txn, &key, |_| Ok(Some(vec![9]))).map(drop))
    };
    let append = |key| cost(move |records, _, txn| records.append(txn, &key, 3, 9).map(drop));
    compare(existing, 0, cost(|records, _, txn| records.update(txn, &1, 1, vec![8]).map(drop)));
    compare(existing, 0, swap(1, Some(&old)));
    compare(existing, 0, modify(1));
    compare(existing, 0, append(1));

    let missing = "`create`; `compare_and_swap`, `modify`, `append` if there is no record";
    compare(missing, 0, cost(|records, _, txn| records.create(txn, &2, vec![8]).map(drop)));
    compare(missing, 0, swap(2, None));
    compare(missing, 0, modify(2));
    compare(missing, 0, append(2));

    compare("`delete`", 0, cost(|records, _, txn| records.delete(txn, &1, 1)));
    compare("refused", 0, cost(|records, _, txn| records.update(txn, &1, 9, vec![8]).map(drop)));
    let counted = "`add`, `min`, `max` of a counter";
    compare(counted, 0, cost(|_, counters, txn| counters.add(txn, &1, 1)));
    compare(counted, 0, cost(|_, counters, txn| counters.min(txn, &1, 1)));
    compare(counted, 0, cost(|_, counters, txn| counters.max(txn, &1, 9)));
    let within = cost(|_, counters, txn| counters.add_within(txn, &1, 1, 0..=9).map(drop));
    compare("`add_within`", 0, within);
    table.end(&[]);
}
