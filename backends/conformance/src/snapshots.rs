//! A snapshot never changes.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::Outcome;
use super::compare::{
    BOTH_ORDERS, Model, agree, blob, ensure, expected, owned, plant, same, same_list,
};
use super::serializable::on_threads;
use keyloom::{KeyRange, Reader, Store, Transaction, Writer};

const KEYS: [&[u8]; 7] = [b"a", b"aa", b"b", b"c", b"d", b"e", b"f"];

pub(super) fn a_snapshot_does_not_change_while_others_write_and_commit<S: Store>(
    store: &S,
) -> Outcome {
    let model = plant(store, &KEYS)?;
    let snapshot = store.snapshot()?;
    agree("at first", &snapshot, &model)?;

    let mut txn = store.begin()?;
    txn.put(b"ab", b"new")?;
    txn.put(b"b", b"changed")?;
    txn.delete(b"c")?;
    txn.delete_range(KeyRange::half_open(b"d", b"f"))?;
    txn.add(b"counter", 1)?;
    agree("while a transaction writes", &snapshot, &model)?;
    txn.commit()?;
    agree("after it committed", &snapshot, &model)?;

    store.transact(|txn| txn.delete_range(KeyRange::all()))?;
    agree("after everything was deleted", &snapshot, &model)?;
    plant(store, &[b"a", b"b"])?;
    agree("after keys were written again", &snapshot, &model)
}

pub(super) fn an_iterator_of_a_snapshot_does_not_notice_commits<S: Store>(store: &S) -> Outcome {
    for order in BOTH_ORDERS {
        store.transact(|txn| txn.delete_range(KeyRange::all()))?;
        let model = plant(store, &KEYS)?;
        let snapshot = store.snapshot()?;
        let mut seen = Vec::new();
        for (step, entry) in snapshot.range(KeyRange::all(), order)?.enumerate() {
            seen.push(owned(entry?));
            store.transact(|txn| {
                txn.put(format!("bb{step}").as_bytes(), b"new")?;
                txn.put(b"e", b"changed")?;
                txn.delete(b"d")
            })?;
            if step == 3 {
                store.transact(|txn| txn.delete_range(KeyRange::all()))?;
            }
            if step > KEYS.len() {
                break;
            }
        }
        same_list(&format!("{order:?}"), &seen, &expected(&model, |_| true, order))?;
    }
    Ok(())
}

pub(super) fn snapshots_show_the_moments_at_which_they_were_taken<S: Store>(store: &S) -> Outcome {
    let mut kept = Vec::new();
    let mut model = Model::new();
    // A remote store may have only 16 connections.
    for round in 0..5_u8 {
        let before = store.snapshot()?;
        let mut txn = store.begin()?;
        txn.put(&[b'k', round], &[round])?;
        txn.put(b"round", &[round])?;
        if round > 2 {
            txn.delete(&[b'k', round - 2])?;
        }
        let during = store.snapshot()?;
        txn.commit()?;
        kept.push((format!("before commit {round}"), before, model.clone()));
        kept.push((format!("during transaction {round}"), during, model.clone()));
        model.insert(blob([b'k', round]), blob([round]));
        model.insert(blob(b"round"), blob([round]));
        if round > 2 {
            model.remove(&[b'k', round - 2][..]);
        }
        kept.push((format!("after commit {round}"), store.snapshot()?, model.clone()));
    }
    kept.iter().try_for_each(|(when, snapshot, model)| agree(when, snapshot, model))
}

pub(super) fn a_snapshot_shows_everything_committed_before_it<S: Store>(store: &S) -> Outcome {
    let mut model = Model::new();
    for n in 0..50_u8 {
        store.transact(|txn| txn.put(&[n % 20, n], &[n]))?;
        model.insert(blob([n % 20, n]), blob([n]));
        same("keys", &store.snapshot()?.count(KeyRange::all())?, &(u64::from(n) + 1))?;
    }
    agree("at the end", &store.snapshot()?, &model)
}

pub(super) fn a_snapshot_does_not_change_by_many_commits<S: Store>(store: &S) -> Outcome {
    // A store that waits for its disk takes milliseconds for each commit.
    const COMMITS: u32 = 1_200;
    let model = plant(store, &KEYS)?;
    let oldest = store.limits().max_age_ms.map(|age| Duration::from_millis(age / 2));
    let (began, snapshot) = (Instant::now(), store.snapshot()?);
    for n in 0..COMMITS {
        if oldest.is_some_and(|oldest| began.elapsed() > oldest) {
            break;
        }
        store.transact(|txn| txn.put(b"b", &n.to_be_bytes()))?;
    }
    agree("afterwards", &snapshot, &model)
}

pub(super) fn parallel_snapshots_show_one_state_while_others_commit<S: Store>(
    store: &S,
) -> Outcome {
    const ROUNDS: u32 = 20;
    let is_over = AtomicBool::new(false);
    on_threads(2, |thread| {
        if thread == 0 {
            for n in 0_u32.. {
                if is_over.load(Relaxed) {
                    break;
                }
                store.transact(|txn| txn.put(b"n", &n.to_be_bytes()))?;
            }
            return Ok(());
        }
        let rounds = || {
            for count in 1..ROUNDS as usize {
                let found = store.parallel_snapshots(count % 4)?;
                ensure(
                    (1..=(count % 4).max(1)).contains(&found.len()),
                    "more snapshots than were requested, or none",
                )?;
                let states = found.iter().map(|one| Ok(one.get(b"n")?.map(|n| n.to_vec())));
                let states = states.collect::<keyloom::Result<Vec<_>>>()?;
                let is_one = states.iter().all(|state| Some(state) == states.first());
                ensure(is_one, "the states differ")?;
            }
            Ok(())
        };
        let outcome = rounds();
        is_over.store(true, Relaxed);
        outcome
    })
}
