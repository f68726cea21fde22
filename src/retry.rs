//! Retries of transactions: their number and pauses, and the loop of [`Store::transact`] and
//! [`Store::try_transact`].

use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

use crate::{Error, Result, Store, Transaction, Writer as _};

/// The number of retries of [`Store::transact`], and the pauses between them.
///
/// ```
/// use keyloom::RetryPolicy;
/// let impatient = RetryPolicy { max_attempts: 3, ..RetryPolicy::default() };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The largest number of attempts, including the first.
    pub max_attempts: u32,
    /// The upper bound of the pause before the second attempt. The bound doubles with each further
    /// attempt.
    pub first_pause: Duration,
    /// The largest pause.
    pub max_pause: Duration,
    /// After this time no new attempt begins, even if `max_attempts` is not reached.
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
    /// attempts may take long while a server does not answer. Remote stores use this policy by
    /// default.
    pub fn remote() -> Self {
        let max_elapsed = Some(Duration::from_secs(60));
        Self { max_attempts: 40, max_elapsed, ..Self::default() }
    }

    /// The pause before attempt `attempt` (the second attempt has number 2): a random time up to
    /// the bound of this attempt, so that writers that conflicted once do not conflict again.
    ///
    /// For programs that retry more than [`Store::transact`] does, such as a decision outside the
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

/// How a form of `transact` treats the errors of its body.
pub(crate) struct Retries<E> {
    is_retryable: fn(&E) -> bool,
    give_up: fn(u32, E) -> E,
}

impl<E> Clone for Retries<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Retries<E> {}

impl Retries<Error> {
    /// The treatment of errors in [`Store::transact`].
    pub(crate) const TRANSACT: Self = Self {
        is_retryable: Error::is_retryable,
        give_up: |attempts, error| Error::RetriesExhausted { attempts, source: Box::new(error) },
    };
}

impl<E: From<Error>> Retries<E> {
    /// The treatment of errors in [`Store::try_transact`].
    pub(crate) const TRY: Self = Self { is_retryable: |_| false, give_up: |_, error| error };

    /// Runs `body` until it is committed or has failed.
    pub(crate) fn run<S: Store + ?Sized, T>(
        self,
        store: &S,
        mut body: impl FnMut(&mut S::Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        match self.first(store, &mut body) {
            Attempt::Done(result) => result,
            Attempt::InVain(failed) => self.resume(store, body, failed),
        }
    }

    /// The first attempt of [`run`](Self::run).
    pub(crate) fn first<S: Store + ?Sized, T>(
        self,
        store: &S,
        body: &mut impl FnMut(&mut S::Transaction<'_>) -> Result<T, E>,
    ) -> Attempt<T, E> {
        let started = Instant::now();
        match self.attempt(store, body) {
            Ok(value) => Attempt::Done(value),
            Err(failure) => Attempt::InVain(Failed { started, failure }),
        }
    }

    /// The other attempts of [`run`](Self::run).
    pub(crate) fn resume<S: Store + ?Sized, T>(
        self,
        store: &S,
        mut body: impl FnMut(&mut S::Transaction<'_>) -> Result<T, E>,
        Failed { started, mut failure }: Failed<E>,
    ) -> Result<T, E> {
        let policy = store.retry_policy();
        let is_over = || policy.max_elapsed.is_some_and(|most| started.elapsed() >= most);
        let mut attempt = 1;
        while attempt < policy.max_attempts && !is_over() {
            attempt += 1;
            std::thread::sleep(policy.pause(attempt));
            failure = match self.attempt(store, &mut body) {
                Ok(result) => return result,
                Err(failure) => failure,
            };
        }
        Err(match failure {
            Failure::OfBody(error) => (self.give_up)(attempt, error),
            Failure::OfStore(source) => {
                Error::RetriesExhausted { attempts: attempt, source: Box::new(source) }.into()
            }
        })
    }

    /// Begins, runs the body and commits, once. The transaction has ended when this returns.
    ///
    /// # Errors
    /// Nothing was committed, and another attempt may succeed.
    fn attempt<S: Store + ?Sized, T>(
        self,
        store: &S,
        body: &mut impl FnMut(&mut S::Transaction<'_>) -> Result<T, E>,
    ) -> Result<Result<T, E>, Failure<E>> {
        let retried_or_not = |error: Error| match error.is_retryable() {
            true => Err(Failure::OfStore(error)),
            false => Ok(Err(error.into())),
        };
        let mut txn = match store.begin() {
            Ok(txn) => txn,
            Err(error) => return retried_or_not(error),
        };
        match body(&mut txn) {
            Ok(value) => match txn.commit() {
                Ok(()) => Ok(Ok(value)),
                Err(error) => retried_or_not(error),
            },
            // A pattern can report a conflict that the store has not detected.
            Err(error)
                if txn.must_restart()
                    || txn.state().must_restart()
                    || (self.is_retryable)(&error) =>
            {
                Err(Failure::OfBody(error))
            }
            Err(error) => Ok(Err(error)),
        }
    }
}

/// The outcome of one attempt.
pub(crate) enum Attempt<T, E> {
    Done(Result<T, E>),
    /// Nothing was committed, and another attempt may succeed.
    InVain(Failed<E>),
}

/// A first attempt that failed, where another attempt may succeed.
pub(crate) struct Failed<E> {
    started: Instant,
    failure: Failure<E>,
}

enum Failure<E> {
    OfBody(E),
    OfStore(Error),
}
