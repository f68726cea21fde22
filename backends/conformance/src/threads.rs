//! A store can be used from all threads.

use super::Outcome;
use super::compare::{Model, agree, blob, ensure, get, same};
use super::serializable::{insist, on_threads};
use keyloom::{KeyRange, Reader, Store, Writer};

pub(super) fn threads_write_and_read_side_by_side<S: Store>(store: &S) -> Outcome {
    const THREADS: u8 = 4;
    const ROUNDS: u8 = 40;
    on_threads(THREADS, |thread| {
        for round in 0..ROUNDS {
            insist(|| store.transact(|txn| txn.put(&[thread, round], &[round])))?;
            let snapshot = store.snapshot()?;
            let mine = snapshot.count(KeyRange::prefix(&[thread]))?;
            same("keys of a thread", &mine, &(u64::from(round) + 1))?;
        }
        Ok(())
    })?;
    let keys = (0..THREADS).flat_map(|thread| (0..ROUNDS).map(move |round| (thread, round)));
    let model: Model = keys.map(|(thread, round)| (blob([thread, round]), blob([round]))).collect();
    agree("at the end", &store.snapshot()?, &model)
}

pub(super) fn a_snapshot_taken_after_a_commit_on_another_thread_sees_it<S: Store>(
    store: &S,
) -> Outcome {
    for round in 0..20_u8 {
        on_threads(1, |_| Ok(store.transact(|txn| txn.put(&[round], b"there"))?))?;
        let value = get(&store.snapshot()?, &[round])?;
        ensure(value.is_some(), "what another thread committed is not there")?;
    }
    Ok(())
}
