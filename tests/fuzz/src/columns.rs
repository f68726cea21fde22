//! The columns of a forward index. For any bytes, reads end with a result or an error that names
//! the key, a check reports the faults, and a repair restores the columns.

use std::ops::ControlFlow;

use keyloom::{Error, KeyBuf, Memory, Store, Subspace, Writer};
use keyloom_patterns::Table;
use keyloom_patterns::bitmaps::{InvertedIndex, one};
use keyloom_patterns::derived::RepairOptions;
use keyloom_patterns::{Maintained, descending};

use crate::records::dump;

type Numbers = InvertedIndex<u32, u32>;

/// A field with a value for some records, a field with lists, and a field with integers.
fn index() -> Numbers {
    InvertedIndex::with_keys_as_ids(&Subspace::new("index"))
        .field("some", |_, n: &u32| one((!n.is_multiple_of(3)).then_some(n % 7)))
        .field("list", |_, n| (0..n % 4).collect())
        .integers("integer", |_, n| Some(i64::from(*n)))
}

pub(crate) fn columns(data: &[u8]) {
    let index = index();
    let table = Table::<u32, u32>::new(&Subspace::new("numbers")).with(&index);
    let store = Memory::new();
    let numbers = (0..40).chain(1_010..1_020).map(|n| (n, n * n));
    store.transact(|txn| table.put_many(txn, numbers.clone())).unwrap();
    let whole = dump(&store);
    for (field, batch) in [("some", 1), ("list", 256), ("integer", 40_000)] {
        let key = index.space().pack(&("direct", field, 0));
        store.transact(|txn| txn.put(&key, data)).unwrap();
        reads_end(&index, &store, &key);
        let faults = index.check(&store.snapshot().unwrap(), &table).unwrap();
        assert_eq!(faults.is_empty(), dump(&store) == whole);
        let options = RepairOptions { batch, resume: None };
        index.repair_with(&store, &table, &options, |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(dump(&store), whole);
    }
}

fn reads_end(index: &Numbers, store: &Memory, key: &KeyBuf) {
    let snapshot = store.snapshot().unwrap();
    let (all, walk) = (|| index.report(index.all()).walk(), &snapshot);
    let batch = index.batch([index.term("some", 2).unwrap(), index.term("list", 1).unwrap()]);
    let progress = |_: &_| ControlFlow::Continue(());
    let errors: [Option<Error>; 6] = [
        all().breakdown::<u32>(walk, "some").err(),
        all().breakdown_by::<(u32, u32)>(walk, &["list", "some"]).err(),
        all().sums::<u32>(walk, "list", "integer").err(),
        index.forward(&snapshot, 1_011).err(),
        index.forward_range(&snapshot, descending(..)).unwrap().find_map(Result::err),
        batch.unwrap().counts(&snapshot, progress).err(),
    ];
    let named = keyloom::key::display(key).to_string();
    for error in errors.iter().flatten() {
        let told = error.to_string();
        // A value that no key can have is found where the rows are unpacked.
        assert!(told.contains(&named) || told.starts_with("at key"), "{told}");
    }
}
