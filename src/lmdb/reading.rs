//! The beginning of a read transaction: always on a committed state.
//!
//! The engine begins a read transaction in three steps. The reader loads the number N of the newest
//! commit, enters it in its slot, and copies the roots of the trees from meta page N mod 2. If the
//! reader is delayed before the third step, commit N + 1 may end and commit N + 2 may begin to
//! write the same meta page. The reader then copies the state of N + 2, which is not committed yet,
//! or a mixture of both. A snapshot taken after it begins at N + 1 and shows an earlier state.
//!
//! Transactions that write copy the same page, but hold the writer's lock when they do.

use std::sync::atomic::{Ordering, fence};
use std::thread;
use std::time::Duration;

use heed::{Env, MdbError, RoTxn, WithoutTls};

use super::readers::Readers;

/// How often, and after which pause, to try again if no reader slot is free for the check.
// A read then fails after 100 ms. Fewer pauses fail while other readers are only passing; more
// delay the error if all slots are held for long.
const MOST_PAUSES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(1);

/// Begins a transaction that reads.
///
/// No writer changes the meta page of N before commit N + 1 has ended. So the copy is correct in
/// two cases: after the copy, the meta page of N + 1 was not yet written, which is found by reading
/// both pages; or a second transaction that begins after the copy also receives N. The second case
/// lasts while N + 1 waits for its fsync, and after a writer died there, until the next commit. So
/// this function waits for neither. If the second transaction receives a later number, that
/// transaction is checked next.
pub(super) fn begin<'e>(
    env: &'e Env<WithoutTls>,
    readers: &Readers,
) -> heed::Result<RoTxn<'e, WithoutTls>> {
    let mut pauses = 0;
    let mut txn = take_slot(env, readers)?;
    loop {
        // The copy is read before the checks.
        fence(Ordering::Acquire);
        // The delay is rare, but it happens: where readers crowd two cores, about one snapshot in a
        // million begins on the page of a later commit.
        if env.info().last_txn_id == txn.id() {
            return Ok(txn);
        }
        match take_slot(env, readers) {
            Ok(later) if later.id() == txn.id() => return Ok(txn),
            Ok(later) => txn = later,
            // The last slot is this transaction's own. It can only wait until there is no commit,
            // or until a slot is free.
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

/// Begins a transaction in a free slot, or in one that a dead process has left.
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
