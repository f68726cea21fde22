//! Fencing tokens: numbers that grow with each lock.
//!
//! A token is greater than those of all earlier locks that exclude it. One counter would do, and
//! would make all requests conflict on an optimistic store. So there are [`SHARDS`] counters, by
//! the first name of the path, and one for requests of the root, which raises all.
//!
//! Numbers of different counters may be equal. So the ticket of a request, which is a part of its
//! key, contains the number of the counter, too: no ticket occurs twice, and an old grant is never
//! taken for a new one.

use keyloom::key::Element;
use keyloom::{Error, KeyBuf, Reader, Result, Writer, pack};
use keyloom_tables::table::get_with;

use crate::Lock;
use crate::locks::Locks;
use crate::records::SessionRecord;

/// The number of counters. Requests below different names conflict in one of this many cases.
// A request of the root raises all counters, so more of them make it cost more.
const SHARDS: u8 = 64;

/// A ticket is a token times this, plus the number of a counter.
// The least power of two above the number of counters. It leaves 2^57 tokens.
pub(crate) const TICKETS: u64 = 128;

/// The counter of requests that lock the root, which the others begin at.
const ROOT: u8 = 0;

impl Locks {
    /// The next token for a request of these locks, and its ticket.
    pub(crate) fn next_token(&self, txn: &mut impl Writer, locks: &[Lock]) -> Result<(u64, u64)> {
        let shards = shards(locks)?;
        let last = match shards.contains(&ROOT) {
            true => self.last_of_all(txn)?,
            false => largest(self.tokens.get_many(txn, &with_root(&shards))?),
        };
        self.next_token_after(txn, last, locks)
    }

    /// The record of a session, and the last token before a request of these locks, in one round
    /// trip unless the root is locked.
    pub(crate) fn session_and_token(
        &self,
        txn: &mut impl Writer,
        session: u64,
        locks: &[Lock],
    ) -> Result<(Option<SessionRecord>, u64)> {
        let shards = shards(locks)?;
        if shards.contains(&ROOT) {
            return Ok((self.sessions.get(txn, &session)?, self.last_of_all(txn)?));
        }
        let tokens = (&self.tokens, &with_root(&shards));
        let written = [self.tokens.entry_key(), self.requests.entry_key()];
        let (record, tokens) = get_with(txn, (&self.sessions, &session), tokens, &written)?;
        Ok((record, largest(tokens)))
    }

    /// The keys that a request of these locks reads, except its claims. For a request of the root,
    /// the counters are not among them.
    pub(crate) fn keys_of_request(&self, session: u64, locks: &[Lock]) -> Result<Vec<KeyBuf>> {
        let entries =
            [self.tokens.entry_key(), self.requests.entry_key()].into_iter().flatten().cloned();
        let mut keys: Vec<KeyBuf> = entries.collect();
        keys.push(self.sessions.space().pack(&session));
        let shards = shards(locks)?;
        if !shards.contains(&ROOT) {
            let counters = with_root(&shards).into_iter();
            keys.extend(counters.map(|shard| self.tokens.space().pack(&shard)));
        }
        Ok(keys)
    }

    /// [`next_token`](Self::next_token), if the last one was read in the same transaction.
    pub(crate) fn next_token_after(
        &self,
        txn: &mut impl Writer,
        last: u64,
        locks: &[Lock],
    ) -> Result<(u64, u64)> {
        let shards = shards(locks)?;
        let next = last.checked_add(1).filter(|next| *next < u64::MAX / TICKETS);
        let next = next.ok_or_else(|| Error::other("2^57 tokens were given"))?;
        self.tokens.put_many(txn, shards.iter().map(|shard| (*shard, next)))?;
        let first = shards.first().copied().unwrap_or(ROOT);
        Ok((next, next * TICKETS + u64::from(first)))
    }

    /// The last number of any request.
    pub(crate) fn last_of_all(&self, reader: &impl Reader) -> Result<u64> {
        let all = self.tokens.range(reader, ..)?;
        all.map(|found| found.map(|(_, last)| last)).try_fold(0, |last, next| Ok(last.max(next?)))
    }
}

/// Requests of the root raise all counters, in effect: others begin at the largest.
fn with_root(shards: &[u8]) -> Vec<u8> {
    [&[ROOT], shards].concat()
}

fn largest(tokens: Vec<Option<u64>>) -> u64 {
    tokens.into_iter().flatten().max().unwrap_or_default()
}

/// The counters of a request, in order.
fn shards(locks: &[Lock]) -> Result<Vec<u8>> {
    let mut all = Vec::with_capacity(locks.len());
    for lock in locks {
        all.push(lock.path.elements()?.first().map_or(ROOT, shard));
    }
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// FNV-1a of the packed name: the same in every program.
fn shard(name: &Element) -> u8 {
    let hash = pack(name).iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // Fits: it is less than SHARDS.
    ROOT + 1 + u8::try_from(hash % u64::from(SHARDS)).unwrap_or_default()
}
