//! Retries of transactions: how often, after which pauses, and the loop of [`Store::transact`] and
//! [`Store::try_transact`].

use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

use crate::{Error, Result, Store, Transaction, Writer as _};

/// How [`Store::transact`] retries.
///
/// ```
/// use keyloom::RetryPolicy;
/// let impatient = RetryPolicy { max_attempts: 3, ..RetryPolicy::default() };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The largest number of attempts, including the first.
    pub max_attempts: u32,
    /// The bound of the pause before the second attempt. It doubles with each attempt.
    pub first_pause: Duration,
    /// The largest pause.
    pub max_pause: Duration,
    /// After this time no new attempt begins, however few there were.
    pub max_elapsed: Option<Duration>,
}

impl Default for RetryPolicy {
    /// 20 attempts, pauses from 1 ms to 1 s.
    fn default() -> Self {
        Self {
            max_attempts: 20,
            first_pause: Duration::from_millis(1),
            max_pause: Duration::from_secs(1),
            max_elapsed: None,
        }
    }
}

impl RetryPolicy {
    /// 40 attempts, pauses from 1 ms to 1 s: some fifteen seconds in all, enough for the restart of
    /// a server or the election of a leader. No new attempt begins after 60 seconds, because
    /// attempts may take long while a server does not answer. The default of remote stores.
    pub fn remote() -> Self {
        let max_elapsed = Some(Duration::from_secs(60));
        Self { max_attempts: 40, max_elapsed, ..Self::default() }
    }

    /// The pause before attempt `attempt` (the second has number 2): a random time up to twice the
    /// last bound, so that writers that conflicted once do not conflict again.
    ///
    /// For programs that retry what [`Store::transact`] does not, such as a decision outside of the
    /// transaction.
    ///
    /// ```
    /// use std::time::Duration;
    /// use keyloom::RetryPolicy;
    /// let policy = RetryPolicy::default();
    /// assert!(policy.pause(2) <= Duration::from_millis(1));
    /// assert!(policy.pause(4) <= Duration::from_millis(4));
    /// ```
    pub fn pause(&self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(2).min(31);
        let longest = self.first_pause.saturating_mul(1 << doublings).min(self.max_pause);
        longest.mul_f64(random_fraction())
    }
}

/// A random number in 0..1. Each `RandomState` of the standard library has random keys.
fn random_fraction() -> f64 {
    const BITS: u32 = 53;
    let random = RandomState::new().hash_one(()) >> (u64::BITS - BITS);
    random as f64 / (1_u64 << BITS) as f64
}

/// The loop of both forms of `transact`.
pub(crate) fn run<S: Store + ?Sized, T, E: From<Error>>(
    store: &S,
    mut body: impl FnMut(&mut S::Transaction<'_>) -> Result<T, E>,
    is_retryable: impl Fn(&E) -> bool,
    give_up: impl Fn(u32, E) -> E,
) -> Result<T, E> {
    let policy = store.retry_policy();
    let started = Instant::now();
    let is_over = || policy.max_elapsed.is_some_and(|most| started.elapsed() >= most);
    let mut attempt = 1;
    loop {
        let failure = match run_once(store, &mut body, &is_retryable)? {
            Ran::Committed(value) => return Ok(value),
            Ran::InVain(failure) => failure,
        };
        if attempt >= policy.max_attempts || is_over() {
            return Err(match failure {
                Failure::OfBody(error) => give_up(attempt, error),
                Failure::OfStore(source) => {
                    Error::RetriesExhausted { attempts: attempt, source: Box::new(source) }.into()
                }
            });
        }
        attempt += 1;
        std::thread::sleep(policy.pause(attempt));
    }
}

enum Ran<T, E> {
    Committed(T),
    /// Nothing was committed, and another attempt may succeed.
    InVain(Failure<E>),
}

enum Failure<E> {
    OfBody(E),
    OfStore(Error),
}

/// Begins, runs the body and commits, once. The transaction has ended when this returns.
fn run_once<S: Store + ?Sized, T, E: From<Error>>(
    store: &S,
    body: &mut impl FnMut(&mut S::Transaction<'_>) -> Result<T, E>,
    is_retryable: &impl Fn(&E) -> bool,
) -> Result<Ran<T, E>, E> {
    let retried_or_not = |error: Error| match error.is_retryable() {
        true => Ok(Ran::InVain(Failure::OfStore(error))),
        false => Err(error.into()),
    };
    let mut txn = match store.begin() {
        Ok(txn) => txn,
        Err(error) => return retried_or_not(error),
    };
    match body(&mut txn) {
        Ok(value) => match txn.commit() {
            Ok(()) => Ok(Ran::Committed(value)),
            Err(error) => retried_or_not(error),
        },
        // A pattern can report a conflict of its own, which the store does not know.
        Err(error) if txn.must_restart() || txn.state().must_restart() || is_retryable(&error) => {
            Ok(Ran::InVain(Failure::OfBody(error)))
        }
        Err(error) => Err(error),
    }
}
