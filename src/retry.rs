//! Retries of transactions: their number and pauses, and the loop of [`Store::transact`] and
//! [`Store::try_transact`].

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

use crate::trace::Running;
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
    /// 20 attempts. The upper bounds of the pauses grow from 1 ms to 1 s.
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
    /// 40 attempts. The upper bounds of the pauses grow from 1 ms to 1 s. On average, the pauses
    /// take some fifteen seconds in total, enough for the restart of a server or the election of a
    /// leader. No new attempt begins after 60 seconds, because attempts may take long while a
    /// server does not answer. Remote stores use this policy by default.
    pub fn remote() -> Self {
        let max_elapsed = Some(Duration::from_secs(60));
        Self { max_attempts: 40, max_elapsed, ..Self::default() }
    }

    /// The pause before attempt `attempt` (the second attempt has number 2): a random time up to
    /// the bound of this attempt, so that writers that conflicted once do not conflict again.
    ///
    /// For programs that retry more work than [`Store::transact`] does, such as a decision that is
    /// made outside the transaction.
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
        body: impl FnMut(&mut S::Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut body = Keeping { body, value: None };
        self.run_body(store, &mut body)?;
        body.kept()
    }

    /// The first attempt of [`run`](Self::run).
    pub(crate) fn first<S: Store + ?Sized, T>(
        self,
        store: &S,
        body: &mut impl FnMut(&mut S::Transaction<'_>) -> Result<T, E>,
    ) -> Attempt<T, E> {
        let mut body = Keeping { body, value: None };
        match self.first_of_body(store, &mut body) {
            Attempt::Done(Ok(())) => Attempt::Done(body.kept()),
            Attempt::Done(Err(error)) => Attempt::Done(Err(error)),
            Attempt::InVain(failed) => Attempt::InVain(failed),
        }
    }

    /// The other attempts of [`run`](Self::run).
    pub(crate) fn resume<S: Store + ?Sized, T>(
        self,
        store: &S,
        body: impl FnMut(&mut S::Transaction<'_>) -> Result<T, E>,
        failed: Failed<E>,
    ) -> Result<T, E> {
        let mut body = Keeping { body, value: None };
        self.resume_body(store, &mut body, failed, &Running::transaction())?;
        body.kept()
    }

    fn run_body<S: Store + ?Sized>(
        self,
        store: &S,
        body: &mut (dyn Body<S, E> + '_),
    ) -> Result<(), E> {
        let running = Running::transaction();
        match self.first_of_body(store, body) {
            Attempt::Done(result) => {
                running.ended(1);
                result
            }
            Attempt::InVain(failed) => self.resume_body(store, body, failed, &running),
        }
    }

    fn first_of_body<S: Store + ?Sized>(
        self,
        store: &S,
        body: &mut (dyn Body<S, E> + '_),
    ) -> Attempt<(), E> {
        let started = Instant::now();
        match self.attempt(store, body) {
            Ok(result) => Attempt::Done(result),
            Err(failure) => Attempt::InVain(Failed { started, failure }),
        }
    }

    fn resume_body<S: Store + ?Sized>(
        self,
        store: &S,
        body: &mut (dyn Body<S, E> + '_),
        Failed { started, mut failure }: Failed<E>,
        running: &Running,
    ) -> Result<(), E> {
        let policy = store.retry_policy();
        let is_over = || policy.max_elapsed.is_some_and(|most| started.elapsed() >= most);
        let mut attempt = 1;
        while attempt < policy.max_attempts && !is_over() {
            attempt += 1;
            let pause = policy.pause(attempt);
            running.runs_again(attempt, pause, &failure);
            std::thread::sleep(pause);
            failure = match self.attempt(store, body) {
                Ok(result) => {
                    running.ended(attempt);
                    return result;
                }
                Err(failure) => failure,
            };
        }
        running.gave_up(attempt, &failure);
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
    fn attempt<S: Store + ?Sized>(
        self,
        store: &S,
        body: &mut (dyn Body<S, E> + '_),
    ) -> Result<Result<(), E>, Failure<E>> {
        let retried_or_not = |error: Error| match error.is_retryable() {
            true => Err(Failure::OfStore(error)),
            false => Ok(Err(error.into())),
        };
        let mut txn = match store.begin() {
            Ok(txn) => txn,
            Err(error) => return retried_or_not(error),
        };
        match body.run(&mut txn) {
            Ok(()) => match txn.commit() {
                Ok(()) => Ok(Ok(())),
                Err(error) => {
                    body.forget();
                    retried_or_not(error)
                }
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

/// A body that keeps its value itself. So the loop is compiled once for each store, and not for
/// each transaction of a program.
// When the type of the body was a parameter, the loops of 955 transactions took 8 % of the code and
// of the build time of a test program.
trait Body<S: Store + ?Sized, E> {
    /// Runs the body, and keeps its value.
    fn run(&mut self, txn: &mut S::Transaction<'_>) -> Result<(), E>;

    /// Drops the value of a run that was not committed. The value may be a guard for which the next
    /// run would wait.
    fn forget(&mut self);
}

/// A body, and the value of its last run.
struct Keeping<B, T> {
    body: B,
    value: Option<T>,
}

impl<S, B, T, E> Body<S, E> for Keeping<B, T>
where
    S: Store + ?Sized,
    B: FnMut(&mut S::Transaction<'_>) -> Result<T, E>,
{
    fn run(&mut self, txn: &mut S::Transaction<'_>) -> Result<(), E> {
        self.value = Some((self.body)(txn)?);
        Ok(())
    }

    fn forget(&mut self) {
        self.value = None;
    }
}

impl<B, T> Keeping<B, T> {
    /// The value of the run that was committed.
    fn kept<E: From<Error>>(self) -> Result<T, E> {
        let is_missing = || Error::other("the body of the transaction did not run").into();
        self.value.ok_or_else(is_missing)
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

impl<E> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfBody(_) => f.write_str("the body met a conflict"),
            Self::OfStore(error) => error.fmt(f),
        }
    }
}
