//! Waits for a change of a key, by a watch.

use std::time::{Duration, Instant};

use super::Shared;
use keyloom::Result;
use keyloom_remote::Outcome;

/// The pause after a failed watch. The next read tries the other members.
// Without a pause, a waiter would send requests in a loop while a member is down. A longer pause
// delays the notice of a change.
const PAUSE: Duration = Duration::from_millis(100);

impl Shared {
    /// Reads the key, and watches it from the revision after the read. So no change between the
    /// read and the watch is missed.
    pub(super) fn wait_for_change(
        &self,
        key: &[u8],
        seen: Option<&[u8]>,
        timeout: Duration,
    ) -> Result<bool> {
        let began = Instant::now();
        loop {
            let (found, revision) = self.values(&[key], None)?;
            let value = found.into_iter().next().flatten();
            if value.as_ref().map(|(value, _)| &**value) != seen {
                return Ok(true);
            }
            let left = timeout.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            self.link.waited_also(1);
            let watch = self.members.watch(self.keys.outer(key), revision + 1);
            match self.link.wait_uncounted(left, watch) {
                Outcome::Answered(Ok(())) | Outcome::TimedOut => {}
                Outcome::Answered(Err(_)) => std::thread::sleep(PAUSE.min(left)),
                Outcome::Refused(error) => return Err(error),
            }
        }
    }
}
