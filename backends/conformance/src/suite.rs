//! The options of a run, and its report.

use std::io::Write as _;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use super::{Finding, Fixture, Law, Outcome, Violation, checks, failures, reopening};
use keyloom::BoxedError;

/// How long a check may run before its name is written.
const PATIENCE: Duration = Duration::from_secs(30);

/// The options of a run: the number of random operations, their seed, and the names of the checks.
///
/// ```
/// use keyloom::Memory;
/// use keyloom_conformance::Suite;
/// let violations = Suite::new().operations(2_000).seed(7).run(|| Ok(Memory::new()))?;
/// assert!(violations.is_empty());
/// # Ok::<(), keyloom::BoxedError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Suite {
    pub(super) operations: usize,
    pub(super) seed: u64,
    only: String,
}

impl Default for Suite {
    fn default() -> Self {
        Self { operations: 5_000, seed: fastrand::u64(..), only: String::new() }
    }
}

impl Suite {
    /// The default effort: 5,000 operations in random histories, from a seed that changes with each
    /// run and is part of each violation.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of operations of all random histories together.
    #[must_use]
    pub fn operations(mut self, operations: usize) -> Self {
        self.operations = operations;
        self
    }

    /// The seed of the random histories. To reproduce a violation, use its seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Runs only the checks whose names contain `name`, for example the check of a violation.
    ///
    /// ```
    /// use keyloom::Memory;
    /// use keyloom_conformance::Suite;
    /// Suite::new().only("a_transaction_sees_its_own").check(|| Ok(Memory::new()));
    /// ```
    #[must_use]
    pub fn only(mut self, name: &str) -> Self {
        name.clone_into(&mut self.only);
        self
    }

    /// Runs each check on a store of its own, and returns the violations.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn run<F: Fixture>(
        &self,
        make: impl Fn() -> Result<F, BoxedError>,
    ) -> Result<Vec<Violation>, BoxedError> {
        self.run_with(make, |_, run| run())
    }

    /// Like [`run`](Suite::run), but panics with all violations if there are any.
    ///
    /// A run can take long, and a faulty store can make it hang. So each violation is written to
    /// the standard error at once, even if the tests capture their output. The name of a check is
    /// written after it has run for 30 seconds, again after twice that time, and so on.
    ///
    /// # Panics
    /// In the cases of [`keyloom_conformance::check`](super::check).
    // The only function of the library that panics: tests call it like `assert!`.
    #[allow(clippy::panic)]
    pub fn check<F: Fixture>(&self, make: impl Fn() -> Result<F, BoxedError>) {
        let watched = |name: &'static str, run: &mut dyn FnMut() -> Checked| {
            let checked = named_if_it_lasts(name, run);
            if let Ok(Some(violation)) = &checked {
                write_line(&format!("the store breaks a promise: {violation}"));
            }
            checked
        };
        let names = checks::<F::Store>().iter().map(|check| check.name()).collect::<Vec<_>>();
        let names = names.into_iter().chain(of_fixtures::<F>().map(|(_, name, _)| name));
        if !names.into_iter().any(|name| name.contains(&self.only)) {
            panic!("no check has {:?} in its name", self.only);
        }
        match self.run_with(make, watched) {
            Ok(violations) if violations.is_empty() => {}
            Ok(violations) => {
                let lines: Vec<_> = violations.iter().map(|v| format!("\n* {v}")).collect();
                panic!("the store breaks {} promises:{}", lines.len(), lines.concat());
            }
            Err(error) => panic!("the store under test cannot be made: {error}"),
        }
    }

    /// Runs every check through `around`, which receives the name of the check.
    fn run_with<F: Fixture>(
        &self,
        make: impl Fn() -> Result<F, BoxedError>,
        around: impl Fn(&'static str, &mut dyn FnMut() -> Checked) -> Checked,
    ) -> Result<Vec<Violation>, BoxedError> {
        let mut violations = Vec::new();
        let is_chosen = |name: &str| name.contains(&self.only);
        for check in checks::<F::Store>().into_iter().filter(|check| is_chosen(check.name())) {
            let run = &mut || Ok(check.run(make()?.store(), self).err());
            violations.extend(around(check.name(), run)?);
        }
        for (law, name, check) in of_fixtures::<F>().into_iter().filter(|one| is_chosen(one.1)) {
            let run = &mut || {
                let seen = check(make()?).err();
                Ok(seen.map(|Finding(seen)| Violation { law, check: name, seen }))
            };
            violations.extend(around(name, run)?);
        }
        Ok(violations)
    }
}

/// The finding of a check, or the error of creating its store.
type Checked = Result<Option<Violation>, BoxedError>;

/// A check of a fixture: its law, its name, and the function.
type OfFixture<F> = (Law, &'static str, fn(F) -> Outcome);

/// The checks that need more than a store.
fn of_fixtures<F: Fixture>() -> [OfFixture<F>; 4] {
    macro_rules! of_fixture {
        ($law:ident, $module:ident: $check:ident) => {
            (Law::$law, stringify!($check), $module::$check)
        };
    }
    [
        of_fixture!(Reopening, reopening: what_was_committed_is_there_after_opening_again),
        of_fixture!(Reopening, reopening: a_store_that_was_opened_again_continues),
        of_fixture!(Failures, failures: after_an_error_an_iterator_returns_no_more),
        of_fixture!(Failures, failures: a_read_that_fails_is_not_cut_short),
    ]
}

/// Runs a check, and writes its name repeatedly while it does not end.
fn named_if_it_lasts(name: &'static str, run: &mut dyn FnMut() -> Checked) -> Checked {
    let (done, waiting) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let (began, mut patience) = (Instant::now(), PATIENCE);
            while waiting.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                write_line(&format!("{name} has run for {} s", began.elapsed().as_secs()));
                patience = began.elapsed();
            }
        });
        let checked = run();
        drop(done);
        checked
    })
}

/// Writes a line to the standard error. The capture of test output is bypassed.
fn write_line(line: &str) {
    // If it cannot be written, the test still fails.
    let _ = writeln!(std::io::stderr().lock(), "keyloom: {line}");
}
