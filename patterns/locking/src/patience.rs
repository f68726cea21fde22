//! How long a caller waits for locks.

use std::time::{Duration, Instant};

use keyloom::{Reader, Result, Store};

use crate::{Blocker, LockError, Stop};

/// How long a caller waits for locks: a [`Duration`], until a [`Stop`] is requested, or both.
///
/// ```
/// use std::thread;
/// use std::time::Duration;
/// use keyloom::Memory;
/// use keyloom_locking::{Lock, LockError, LockPath, Locks, Patience, Session, Stop};
/// use keyloom_tables::Schema;
/// let store = Memory::new();
/// let locks = Locks::open(&Schema::open(&store, "shop")?, "locks")?;
/// let [ada, grace] = ["ada", "grace"].map(|name| Session::begin(&store, &locks, name));
/// let (ada, grace) = (ada?, grace?);
/// let report = [Lock::exclusive(LockPath::of(["report"]))];
/// let held = ada.lock(&report)?;
///
/// // Another thread gives up the request of Grace, for example at the end of the program.
/// let stop = Stop::new();
/// thread::scope(|scope| {
///     scope.spawn(|| stop.request());
///     let error = grace.lock_within(&report, &stop).map(drop).unwrap_err();
///     assert!(matches!(error.downcast_ref(), Some(LockError::Stopped { .. })));
/// });
/// let soon = Patience::from(&stop).at_most(Duration::from_secs(5));
/// assert!(grace.lock_within(&report, soon).is_err(), "the stop was requested before");
/// drop(held);
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Patience {
    most: Duration,
    stop: Option<Stop>,
}

impl From<Duration> for Patience {
    fn from(most: Duration) -> Self {
        Self { most, stop: None }
    }
}

impl From<&Stop> for Patience {
    /// Waits until the stop is requested.
    fn from(stop: &Stop) -> Self {
        Self { most: Duration::MAX, stop: Some(stop.clone()) }
    }
}

impl Patience {
    /// Also limits the wait to `most`.
    #[must_use]
    pub fn at_most(self, most: Duration) -> Self {
        Self { most: self.most.min(most), ..self }
    }

    /// The error at the end of a wait for `lock`.
    pub(crate) fn error(
        &self,
        lock: String,
        waited: Duration,
        blockers: Vec<Blocker>,
    ) -> LockError {
        match self.is_stopped() {
            true => LockError::Stopped { lock, blockers },
            false => LockError::TimedOut { lock, waited, blockers },
        }
    }

    /// Whether the stop was requested.
    fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(Stop::is_requested)
    }

    /// The time that is left of a wait that began at `began`.
    pub(crate) fn left(&self, began: Instant) -> Duration {
        match self.is_stopped() {
            true => Duration::ZERO,
            false => self.most.saturating_sub(began.elapsed()),
        }
    }

    /// Waits until the value of a key differs from `seen`, or the stop is requested, at most for
    /// `most`.
    pub(crate) fn wait<S: Store>(
        &self,
        store: &S,
        key: &[u8],
        seen: Option<&[u8]>,
        most: Duration,
    ) -> Result<()> {
        let Some(stop) = &self.stop else {
            return store.wait_for_change(key, seen, most).map(drop);
        };
        // Not `wait_for_change`, which a stop cannot end.
        let (began, mut listener) = (Instant::now(), None);
        while store.snapshot()?.get(key)?.as_deref() == seen {
            let left = most.saturating_sub(began.elapsed());
            if left.is_zero() || stop.is_requested() {
                break;
            }
            let listener = listener.get_or_insert_with(|| store.listen(key));
            let pause = listener.pause();
            stop.wait_for(listener, pause.min(left));
        }
        Ok(())
    }
}
