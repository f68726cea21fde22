//! Where reading begins: on a state that is committed, and on one only.
//!
//! The engine does this in three steps. A reader loads the number N of the newest commit, enters it
//! in its slot, and copies the roots of the trees from meta page N mod 2. A reader that is held up
//! before the last step, while commit N + 1 ends and commit N + 2 writes its meta page, copies from
//! the page of N what N + 2 is writing: a state that counts only once the disk has it, or a part of
//! each. The snapshot that follows begins at N + 1 and shows an earlier state.
//!
//! Transactions that write copy the same page, but hold the writer's lock when they do.

use std::sync::atomic::{Ordering, fence};
use std::thread;
use std::time::Duration;

use heed::{Env, MdbError, RoTxn, WithoutTls};

use super::readers::Readers;

/// How often, and after what pause, to look again when there is no slot for a look.
const MOST_PAUSES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(1);

/// Begins a transaction that reads.
///
/// Nobody writes on the page of N before commit N + 1 has ended. So the copy was a good one when,
/// after it, the meta page of N + 1 had not been written, which costs a look at both pages, or when
/// a second transaction that is begun after it is given N as well. The latter is so for as long as
/// N + 1 waits for the disk, and for as long as nobody writes after a writer that died there: this
/// never waits for either. When it is given a later number, it is the next to be looked at.
pub(super) fn begin<'e>(
    env: &'e Env<WithoutTls>,
    readers: &Readers,
) -> heed::Result<RoTxn<'e, WithoutTls>> {
    let mut pauses = 0;
    let mut txn = take_slot(env, readers)?;
    loop {
        // The copy comes before the looks.
        fence(Ordering::Acquire);
        if env.info().last_txn_id == txn.id() {
            return Ok(txn);
        }
        match take_slot(env, readers) {
            Ok(later) if later.id() == txn.id() => return Ok(txn),
            Ok(later) => txn = later,
            // The last slot is this one's own. By itself it can only wait for a moment without a
            // commit, or for a slot.
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
