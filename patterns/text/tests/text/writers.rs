//! Concurrent writers of documents with common words.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use keyloom::{Error, Memory, Store};
use keyloom_tables::Maintained;
use keyloom_text::{Bm25, Query};

use super::corpus::{Model, index, post, posts};
use super::naive::Naive;

const WRITERS: u32 = 16;

/// 16 writers put documents, `batch` per transaction. Returns the number of runs and of commits.
fn write(store: &Memory, model: &Model, batch: usize) -> (u64, u64) {
    let table = posts(&index(false));
    let (runs, commits) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (table, runs, commits) = (&table, &runs, &commits);
            scope.spawn(move || {
                let own: Vec<_> = model.iter().filter(|(id, _)| *id % WRITERS == writer).collect();
                for some in own.chunks(batch) {
                    let put = || {
                        store.transact(|txn| {
                            runs.fetch_add(1, Relaxed);
                            table.put_many(
                                txn,
                                some.iter().map(|(id, post)| (**id, (*post).clone())),
                            )
                        })
                    };
                    while let Err(error) = put() {
                        assert!(matches!(error, Error::RetriesExhausted { .. }), "{error}");
                    }
                    commits.fetch_add(1, Relaxed);
                }
            });
        }
    });
    (runs.into_inner(), commits.into_inner())
}

#[test]
fn concurrent_writers_leave_exact_statistics() {
    let mut random = fastrand::Rng::with_seed(1);
    let model: Model = (0..480).map(|id| (id, post(&mut random))).collect();
    for batch in [1, 6] {
        let store = keyloom_testing::optimistic_memory();
        let (runs, commits) = write(&store, &model, batch);
        println!("16 writers, batches of {batch}: {runs} runs of {commits} commits");
        assert!(runs >= commits && commits == model.len().div_ceil(batch) as u64);
        let (index, snapshot) = (index(false), store.snapshot().unwrap());
        assert_eq!(index.check(&snapshot, &posts(&index)).unwrap(), []);
        for word in ["w0", "w1", "w7"] {
            let query = Query::term("body", word);
            let wanted = Naive::new(&model, Bm25::default()).all(&query);
            let hits = index.search(query).limit(1_000).hits(&snapshot).unwrap().items;
            assert_eq!(hits.len(), wanted.len());
            assert!(hits.iter().all(|hit| (hit.score - wanted[&hit.key]).abs() < 1e-6));
        }
    }
}
