//! Waits for a change of a key, by a watch.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Shared;
use keyloom::Result;
use keyloom::backend::{ChangeListener, ChangedKeys, CommitSignal};
use keyloom_remote::Outcome;

/// The pause after a failed watch. The next read tries the other members.
// Without a pause, a waiter would send requests in a loop while a member is down. A longer pause
// delays the notice of a change.
const PAUSE: Duration = Duration::from_millis(100);

/// Listens for changes of a key by a watch of its own.
pub(super) fn listen(shared: &Arc<Shared>, key: &[u8]) -> ChangeListener {
    // Not one signal for the store: the watch of one listener would wake all listeners of the key.
    let signal = CommitSignal::default();
    let listener = signal.listen(key).unnotified();
    let (own, key) = (Arc::clone(shared), shared.keys.outer(key));
    let watching = async move {
        loop {
            let notify = || signal.notify(ChangedKeys::any());
            // After an error or a cancelled watch, the read of the caller fails or finds another
            // member.
            let _ = own.members.watch(key.clone(), notify).await;
            notify();
            tokio::time::sleep(PAUSE).await;
        }
    };
    listener.with_guard(shared.link.spawn_until_dropped(watching))
}

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
            let watch = self.members.change(self.keys.outer(key), revision + 1);
            match self.link.wait_uncounted(left, watch) {
                Outcome::Answered(Ok(())) | Outcome::TimedOut => {}
                Outcome::Answered(Err(_)) => std::thread::sleep(PAUSE.min(left)),
                Outcome::Refused(error) => return Err(error),
            }
        }
    }
}
