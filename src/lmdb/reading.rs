//! Begins a read transaction, always on a committed state.
//!
//! The engine begins a read transaction in three steps. The reader loads the number N of the newest
//! commit, enters it in its slot, and copies the roots of the trees from meta page N mod 2. If the
//! reader is delayed before the third step, commit N + 1 may end and commit N + 2 may begin to
//! write the same meta page. The reader then copies the state of N + 2, which is not committed yet,
//! or a mixture of both. The next snapshot may then begin at N + 1 and show an earlier state.
//!
//! Write transactions copy the same page, but hold the writer's lock while they do so.

use std::sync::atomic::{Ordering, fence};
use std::thread;
use std::time::Duration;

use heed::{Env, MdbError, RoTxn, WithoutTls};

use super::readers::Readers;

/// The largest number of pauses while no reader slot is free for the check.
// A read then fails after 100 ms. With fewer pauses, a read fails although other readers hold their
// slots only briefly. More pauses delay the error if all slots are held for long.
const MOST_PAUSES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(1);

/// Begins a read transaction.
///
/// No writer changes the meta page of N before commit N + 1 has ended. So the copy is correct in
/// two cases. First: after the copy, the meta page of N + 1 was not yet written, which is found by
/// reading both pages. Second: a second transaction that begins after the copy also receives N. The
/// second case lasts while N + 1 waits for its fsync; if the writer dies during the wait, it lasts
/// until the next commit. This function waits neither for the fsync nor for that commit. If the
/// second transaction receives a later number, that transaction is checked next.
pub(super) fn begin<'e>(
    env: &'e Env<WithoutTls>,
    readers: &Readers,
) -> heed::Result<RoTxn<'e, WithoutTls>> {
    let mut pauses = 0;
    let mut txn = take_slot(env, readers)?;
    loop {
        // Orders the copy before the checks.
        fence(Ordering::Acquire);
        // The race is rare but real: with many readers on two cores, about one snapshot in a
        // million begins on the page of a later commit.
        if env.info().last_txn_id == txn.id() {
            return Ok(txn);
        }
        match take_slot(env, readers) {
            Ok(later) if later.id() == txn.id() => return Ok(txn),
            Ok(later) => txn = later,
            // This transaction itself holds the last slot. So it ends and begins again after a
            // pause, until no commit is in progress or another slot is free.
            Err(heed::Error::Mdb(MdbError::ReadersFull)) if pauses < MOST_PAUSES => {
                pauses += 1;
                drop(txn);
                thread::sleep(PAUSE);
                txn = take_slot(env, readers)?;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Begins a transaction in a free slot, or in a slot that a dead process has left.
fn take_slot<'e>(
    env: &'e Env<WithoutTls>,
    readers: &Readers,
) -> heed::Result<RoTxn<'e, WithoutTls>> {
    match env.read_txn() {
        Err(heed::Error::Mdb(MdbError::ReadersFull)) if readers.clear_dead(env)? > 0 => {
            env.read_txn()
        }
        begun => begun,
    }
}
