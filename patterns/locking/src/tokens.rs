//! Fencing tokens: numbers that increase with each lock.
//!
//! A token is greater than the tokens of all earlier locks that exclude its lock. With a single
//! counter, all requests would conflict on an optimistic store. So there are [`SHARDS`] counters,
//! chosen by the first name of the path, and one counter for requests of the root. The other
//! counters never continue below the root counter.
//!
//! Different counters may yield equal tokens. So the ticket of a request, which is part of its key,
//! also contains the number of the counter: no ticket occurs twice, and an old grant is never
//! mistaken for a new one.

use keyloom::key::Element;
use keyloom::{Error, KeyBuf, Reader, Result, Writer, pack};
use keyloom_tables::table::get_with;

use crate::Lock;
use crate::locks::Locks;
use crate::records::SessionRecord;

/// The number of counters. Requests below different names share a counter with a probability of 1
/// in `SHARDS`.
// A request of the root reads all counters, so it costs more with more counters.
const SHARDS: u8 = 64;

/// A ticket is a token times this, plus the number of a counter.
// The smallest power of two above the number of counters. It leaves 2^57 tokens.
pub(crate) const TICKETS: u64 = 128;

/// The counter of requests that lock the root. The other counters continue after it if it is ahead
/// of them.
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
    /// the counters are not included.
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

    /// [`next_token`](Self::next_token) after the token `last`, which was read in the same
    /// transaction.
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

    /// The largest token issued by any counter.
    pub(crate) fn last_of_all(&self, reader: &impl Reader) -> Result<u64> {
        let all = self.tokens.range(reader, ..)?;
        all.map(|found| found.map(|(_, last)| last)).try_fold(0, |last, next| Ok(last.max(next?)))
    }
}

/// Adds the counter of the root. A request continues after the largest of its counters, so a
/// request of the root raises all counters in effect.
fn with_root(shards: &[u8]) -> Vec<u8> {
    [&[ROOT], shards].concat()
}

fn largest(tokens: Vec<Option<u64>>) -> u64 {
    tokens.into_iter().flatten().max().unwrap_or_default()
}

/// The counters of a request, in ascending order.
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
    // The conversion cannot fail: the number is less than `SHARDS`.
    ROOT + 1 + u8::try_from(hash % u64::from(SHARDS)).unwrap_or_default()
}
