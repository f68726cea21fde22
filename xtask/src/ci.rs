//! The steps that a change must pass, in one table.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The forms of the run that include a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// Both forms.
    Always,
    /// Only the quick form, in place of a step of the full one.
    Quick,
    Full,
    /// Only the full form, if there is a commit to compare with.
    FullWithParent,
    /// Neither form, but a nightly run, for steps that take long to build and seldom fail alone.
    Nightly,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    name: &'static str,
    when: When,
    /// The command as in a shell: variables first, words separated by spaces. `SCRATCH` is a
    /// directory that is empty at the start of the run.
    command: &'static str,
    /// Whether the step runs concurrently with the steps after it, and prints its output at its
    /// end.
    is_beside: bool,
}

const fn step(name: &'static str, when: When, command: &'static str) -> Step {
    Step { name, when, command, is_beside: false }
}

/// A step whose tests wait more than they compute: the next build runs concurrently.
const fn beside(step: Step) -> Step {
    Step { is_beside: true, ..step }
}

/// The packages and features that all test steps build, always with one set of features, so that
/// cargo compiles each crate once.
macro_rules! tested {
    () => {
        concat!(
            "--locked --no-fail-fast --workspace --exclude keyloom-benches --exclude keyloom-compare ",
            // The tests of this crate link a client library that is in no package registry.
            "--exclude keyloom-foundationdb ",
            // These take 500 s of CPU to build and to run. The quick run and the nightly run test
            // them, and the examples of the book.
            "--exclude keyloom-examples --exclude keyloom-service --exclude keyloom-campaigns ",
            "--exclude keyloom-tour --exclude keyloom-fjall --exclude keyloom-cli ",
            "--exclude keyloom-derive ",
            "--features keyloom-testing/postgres,keyloom-testing/etcd,keyloom-testing/tls "
        )
    };
}

/// Tests on embedded stores, with a quarter of the random cases of `cargo test`, and three tenths
/// of the mutated inputs. Left out are the memory store with locks and laws in memory (optimistic
/// transactions and LMDB run the same tests, and validate more), the queries that must not compile
/// (they rebuild all dependencies), and the measurement of memory (37 s on one core).
macro_rules! tests {
    ($tests:literal) => {
        concat!(
            "PROPTEST_CASES=16 KEYLOOM_FUZZ_INPUTS=60 cargo test ",
            tested!(),
            "--exclude keyloom-on-servers ",
            $tests,
            " --skip on_memory --skip keeps_the_laws_in_memory --skip keep_the_laws_in_memory ",
            "--skip queries_of_a_wrong_type ",
            "--skip misuse_is_a_compile_error ",
            "--skip runs_take_less_memory_than_their_bound ",
            // Each takes more than five seconds of CPU alone, most of them on each store.
            "--skip upgrades_without_verification_are_found ",
            "--skip a_wake_up_reads_as_many_keys_for_any_number_of_waiters ",
            "--skip damage_in_the_middle_of_work_in_steps_is_repaired ",
            "--skip fault_at_any_operation_of_steps_leaves_the_old_or_new_tree ",
            "--skip checks_beside_a_writer_read_one_state --skip faults_are_those_of_one_thread ",
            "--skip work_that_fails_can_be_done_again --skip a_plan_that_fails_anywhere_resumes ",
            "--skip a_codec_that_ignores --skip groups_answer_as_indexes_of_their_own ",
            "--skip matches_of_one_term_read_few_blocks ",
            "--skip indexes_keep_the_laws_beside_other_transactions ",
            "--skip prefixes_of_too_many_terms_are_refused ",
            "--skip an_import_that_dies_after_any_commit_can_be_repeated ",
            "--skip refreshes_that_meet_agree --skip a_refresh_of_many_vertices_builds_all_blocks ",
            "--skip a_step_of_a_refresh_is_bounded ",
            "--skip large_loads_in_memory_leave_the_bytes_of_single_puts ",
            "--skip nearest_cities_take_few_reads_in_towns_and_at_the_poles ",
            "--skip few_keys_are_read_in_vain_around_the_cities_of_the_world"
        )
    };
}

/// Tests on servers.
macro_rules! on_servers {
    ($tests:literal) => {
        concat!(
            "KEYLOOM_REQUIRE_SERVERS=1 PROPTEST_CASES=16 KEYLOOM_ISOLATION_TRANSACTIONS=3000 ",
            "tests/servers/with.sh cargo test ",
            tested!(),
            "--features keyloom-on-servers/postgres,keyloom-on-servers/etcd,keyloom-on-servers/tls ",
            $tests,
            // The last step tests the embedded stores.
            " --skip on_memory --skip on_optimistic_memory --skip on_lmdb ",
            "--skip on_redb --skip metered_ --skip faulty_"
        )
    };
}

/// All steps, in the order of the run.
const STEPS: &[Step] = &[
    step("fmt", When::Always, "cargo fmt --all --check"),
    step("words", When::Always, "cargo xtask words"),
    step("clippy-quick", When::Quick, "cargo clippy --locked --all-targets -- -D warnings"),
    step("xtask", When::Always, "cargo test --locked -p xtask"),
    // Without the book, which enables LMDB.
    step(
        "no-default-features",
        When::Full,
        "cargo check --locked -p keyloom -p keyloom-patterns --no-default-features",
    ),
    step("mutants", When::FullWithParent, "tests/mutants.sh --in-diff HEAD~1"),
    // tests/fuzz/run.sh and tests/memory.sh would take ten minutes more, mostly for builds.
    step("miri", When::Full, "tests/miri.sh"),
    // First, because these tests wait for the servers while all others are built.
    step(
        "build-servers",
        When::Full,
        concat!(
            "cargo test ",
            tested!(),
            "--features keyloom-on-servers/postgres,keyloom-on-servers/etcd,keyloom-on-servers/tls ",
            "--test etcd --test kills --test path --test postgres --test servers --no-run"
        ),
    ),
    beside(step(
        "servers",
        When::Full,
        on_servers!("--test etcd --test kills --test path --test postgres --test servers --"),
    )),
    step("test-quick", When::Quick, "cargo test --locked"),
    // Builds the programs that the next steps run concurrently: one test program alone seldom keeps
    // two cores busy.
    step(
        "build",
        When::Full,
        concat!("cargo test ", tested!(), "--exclude keyloom-on-servers --no-run"),
    ),
    // The examples of the core. Those of all crates take 250 s of CPU to build: the quick run and
    // the nightly run test them.
    beside(step(
        "test-doc",
        When::Full,
        concat!(
            "RUSTDOC=tests/rustdoc.sh KEYLOOM_DOCUMENTED=keyloom cargo test ",
            tested!(),
            "--exclude keyloom-on-servers --doc"
        ),
    )),
    beside(step("test-m-to-z", When::Full, tests!("--test [m-z]* --"))),
    step("test", When::Full, tests!("--lib --bins --examples --test [!m-z]* --")),
    // All features, and the benchmarks. A change is linted by the quick run: in the full run, lints
    // took an eighth of the time of the build.
    step(
        "clippy",
        When::Nightly,
        "cargo clippy --locked --workspace --exclude keyloom-compare --all-targets --all-features -- -D warnings",
    ),
    // All features, and the documentation of programs.
    step(
        "doc",
        When::Nightly,
        "RUSTDOCFLAGS=-Dwarnings cargo doc --locked --no-deps --workspace --exclude keyloom-compare --all-features",
    ),
    // Builds keyloom with each set of features that a page shows: 8 minutes on two busy cores.
    step("pages", When::Nightly, "cargo xtask pages"),
    step("browser", When::Nightly, "tests/browser/run.sh"),
    step("campaigns", When::Nightly, "cargo campaign ci --results target/campaigns"),
    // With four times the random cases, on every store, and with the tests that take long.
    step(
        "test-all",
        When::Nightly,
        "PROPTEST_CASES=256 KEYLOOM_FUZZ_INPUTS=600 KEYLOOM_ISOLATION_TRANSACTIONS=20000 cargo test --locked --no-fail-fast -- --include-ignored",
    ),
    step("compare", When::Nightly, "cargo check --locked -p keyloom-compare --all-targets"),
    step(
        "release",
        When::Nightly,
        "cargo run --locked --release -p keyloom-tour -- --store lmdb:SCRATCH/release",
    ),
    // The round trips that the book documents, counted in memory.
    step(
        "far-away",
        When::Nightly,
        "cargo run --locked --release -p keyloom-examples --bin far_away",
    ),
    step(
        "servers-documents",
        When::Nightly,
        on_servers!("--test documents -- on_postgres on_etcd"),
    ),
    step(
        "servers-bitmaps",
        When::Nightly,
        on_servers!("--test bitmaps -- reports::on_postgres reports::on_etcd"),
    ),
    step("servers-graph", When::Nightly, on_servers!("--test graph -- on_postgres on_etcd")),
    step("servers-locking", When::Nightly, on_servers!("--test locking -- on_postgres on_etcd")),
    step(
        "servers-writers",
        When::Nightly,
        on_servers!("--test conflicts --test feed_kills -- on_postgres on_etcd"),
    ),
    step("servers-spatial", When::Nightly, on_servers!("--test spatial -- on_postgres on_etcd")),
    step("servers-text", When::Nightly, on_servers!("--test text -- on_postgres on_etcd")),
    step(
        "servers-tour",
        When::Nightly,
        "KEYLOOM_REQUIRE_SERVERS=1 tests/servers/with.sh cargo test --locked -p keyloom-tour --features postgres,etcd,tls --test tour -- on_postgres on_etcd",
    ),
    // Every command of keyloom on every engine, and copies that are killed.
    step(
        "servers-cli",
        When::Nightly,
        "KEYLOOM_REQUIRE_SERVERS=1 tests/servers/with.sh cargo test --locked -p keyloom-cli --features postgres,etcd,tls --test run -- every_store killing_copies",
    ),
    step(
        "servers-tables",
        When::Nightly,
        on_servers!("--test tables -- index::on_ versioned::on_ --skip property_index"),
    ),
    step(
        "servers-schema",
        When::Nightly,
        on_servers!(
            "--test schema -- opening_an_unchanged_schema processes::on_postgres totals_keep"
        ),
    ),
    step(
        "servers-doc",
        When::Nightly,
        "KEYLOOM_REQUIRE_SERVERS=1 tests/servers/with.sh cargo test --locked --doc -p keyloom-postgres -p keyloom-etcd -p keyloom-remote",
    ),
];

#[cfg(test)]
pub(crate) fn commands() -> impl Iterator<Item = &'static str> {
    STEPS.iter().map(|step| step.command)
}

/// Prints the steps.
pub(crate) fn list() {
    for step in STEPS {
        println!("{:<20} {:<15} {}", step.name, format!("{:?}", step.when), step.command);
    }
}

/// Runs the steps of `--quick`, `--full` or `--nightly`, or those given by name.
pub(crate) fn run(root: &Path, chosen: &[&str]) -> Result<()> {
    let steps = choose(STEPS, chosen, has_parent(root))?;
    run_steps(root, &steps)
}

fn choose(steps: &[Step], chosen: &[&str], has_parent: bool) -> Result<Vec<Step>> {
    let by_form = |forms: &[When]| {
        Ok(steps.iter().filter(|step| forms.contains(&step.when)).copied().collect())
    };
    match chosen {
        ["--quick"] => by_form(&[When::Always, When::Quick]),
        ["--nightly"] => by_form(&[When::Nightly]),
        ["--full"] if has_parent => by_form(&[When::Always, When::Full, When::FullWithParent]),
        ["--full"] => by_form(&[When::Always, When::Full]),
        names => names.iter().map(|name| by_name(steps, name)).collect(),
    }
}

fn by_name(steps: &[Step], name: &str) -> Result<Step> {
    let found = steps.iter().find(|step| step.name == name);
    found.copied().with_context(|| format!("no step {name}: see cargo xtask ci --list"))
}

/// Whether there is a commit before this one; a shallow clone has none.
fn has_parent(root: &Path) -> bool {
    let mut git = Command::new("git");
    git.args(["rev-parse", "--quiet", "--verify", "HEAD~1"]).current_dir(root);
    git.output().is_ok_and(|output| output.status.success())
}

fn run_steps(root: &Path, steps: &[Step]) -> Result<()> {
    let scratch = root.join("target/ci");
    if scratch.exists() {
        fs::remove_dir_all(&scratch).with_context(|| scratch.display().to_string())?;
    }
    fs::create_dir_all(&scratch).with_context(|| scratch.display().to_string())?;
    let began = Instant::now();
    let (mut times, mut running, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for (n, step) in steps.iter().enumerate() {
        println!("\n=== {}: {} ===", step.name, step.command);
        if step.is_beside && n + 1 < steps.len() {
            running.push(Running::start(root, step, &scratch)?);
            continue;
        }
        let from = Instant::now();
        let (succeeded, output) = run_step(root, step, &scratch)?;
        times.push((step.name, from.elapsed()));
        println!("=== {} s; {} s in all ===", from.elapsed().as_secs(), began.elapsed().as_secs());
        if !succeeded {
            failed.push((step, output));
            break;
        }
    }
    for one in running {
        let (step, from) = (one.step, one.from);
        println!("\n=== {}, which ran beside: {} ===", step.name, step.command);
        let (succeeded, output) = one.finish()?;
        times.push((step.name, from.elapsed()));
        if !succeeded {
            failed.push((step, output));
        }
    }
    // At the end of the log, because only the end of a long log is kept.
    for (step, output) in &failed {
        println!("\n=== {} failed ===\n{}", step.name, failures(output));
    }
    print_times(&times);
    match failed.first() {
        Some((Step { name, command, .. }, _)) => {
            bail!("step {name} failed. Alone: cargo xtask ci {name}\n    {command}")
        }
        None => Ok(()),
    }
}

/// Runs a step, and shows its output while it runs. Returns whether it succeeded.
fn run_step(root: &Path, step: &Step, scratch: &Path) -> Result<(bool, String)> {
    let (reader, writer) = std::io::pipe()?;
    let mut command = command_of(root, step, scratch)?;
    let mut child = command.stdout(writer.try_clone()?).stderr(writer).spawn()?;
    // The command holds the write ends of the pipe; the lines would not end before it is dropped.
    drop(command);
    let mut output = String::new();
    for line in BufReader::new(reader).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        writeln!(std::io::stdout(), "{line}")?;
        output += &line;
        output.push('\n');
    }
    Ok((child.wait()?.success(), output))
}

/// The lines of cargo's output that describe failures: compiler errors, and the output of failed
/// tests. At most the first [`SHOWN`] lines.
fn failures(output: &str) -> String {
    let (mut shown, mut until): (Vec<&str>, Option<fn(&str) -> bool>) = (Vec::new(), None);
    for line in output.lines() {
        if until.is_none() {
            until = match line {
                "failures:" => Some(|line| line.starts_with("test result:")),
                _ if line.starts_with("error") => Some(str::is_empty),
                _ => None,
            };
        }
        if let Some(is_last) = until {
            shown.push(line);
            until = if is_last(line) { None } else { until };
        }
    }
    let left_off = shown.len().saturating_sub(SHOWN);
    shown.truncate(SHOWN);
    let mut shown = shown.join("\n");
    if left_off > 0 {
        shown += &format!("\n{left_off} more lines are above");
    }
    shown
}

/// The maximum number of lines that are repeated at the end for a failed step.
const SHOWN: usize = 100;

/// A step that runs concurrently with others.
struct Running<'s> {
    step: &'s Step,
    from: Instant,
    child: Child,
    output: PathBuf,
}

impl<'s> Running<'s> {
    fn start(root: &Path, step: &'s Step, scratch: &Path) -> Result<Self> {
        let output = scratch.join(format!("{}.log", step.name));
        let file = fs::File::create(&output).with_context(|| output.display().to_string())?;
        let mut command = command_of(root, step, scratch)?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = command.spawn().with_context(|| format!("{} does not start", step.name))?;
        Ok(Self { step, from: Instant::now(), child, output })
    }

    /// Waits for the end of the step, and prints its output. Returns whether it succeeded.
    fn finish(mut self) -> Result<(bool, String)> {
        let status = self.child.wait()?;
        let output = String::from_utf8_lossy(&fs::read(&self.output)?).into_owned();
        print!("{output}");
        Ok((status.success(), output))
    }
}

fn print_times(times: &[(&str, Duration)]) {
    println!();
    for (name, elapsed) in times {
        println!("{:>8.1} s  {name}", elapsed.as_secs_f64());
    }
}

/// The command of a step.
fn command_of(root: &Path, step: &Step, scratch: &Path) -> Result<Command> {
    let mut words = step.command.split_whitespace().peekable();
    let mut variables = Vec::new();
    while let Some(variable) = words.next_if(|word| is_variable(word)) {
        variables.extend(variable.split_once('='));
    }
    let program = words.next().with_context(|| format!("step {} has no command", step.name))?;
    let scratch = scratch.to_string_lossy();
    let filled = |word: &str| word.replace("SCRATCH", &scratch);
    let mut command = Command::new(filled(program));
    // These variables are removed. Otherwise, build scripts that depend on them would run again,
    // and many crates would be recompiled, on every change between `cargo` and `cargo xtask`.
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_package(&name.to_string_lossy()))
    {
        command.env_remove(name);
    }
    command.args(words.map(filled)).envs(variables).current_dir(root);
    Ok(command)
}

/// Whether cargo sets this variable for the program that it runs, which here is this program.
fn is_of_package(name: &str) -> bool {
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

fn is_variable(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn names(steps: &[Step]) -> Vec<&str> {
        steps.iter().map(|step| step.name).collect()
    }

    #[test]
    fn quick_run_has_fmt_words_clippy_and_tests() {
        let quick = choose(STEPS, &["--quick"], true).unwrap();
        assert_eq!(names(&quick), ["fmt", "words", "clippy-quick", "xtask", "test-quick"]);
    }

    #[test]
    fn full_run_has_every_step_but_the_quick_clippy() {
        let full = choose(STEPS, &["--full"], true).unwrap();
        let others = |step: &&Step| matches!(step.when, When::Quick | When::Nightly);
        assert_eq!(full.len(), STEPS.len() - STEPS.iter().filter(others).count());
        let shallow = choose(STEPS, &["--full"], false).unwrap();
        assert!(!names(&shallow).contains(&"mutants"));
        assert_eq!(shallow.len(), full.len() - 1);
    }

    #[test]
    fn names_of_steps_are_unique_and_scripts_exist() {
        let root = crate::root().unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for step in STEPS {
            assert!(seen.insert(step.name), "{} is there twice", step.name);
            for word in step.command.split_whitespace().filter(|word| word.ends_with(".sh")) {
                let script = word.split_once('=').map_or(word, |(_, script)| script);
                assert!(root.join(script).is_file(), "{script} is missing");
            }
        }
    }

    #[test]
    fn a_named_step_that_does_not_exist_is_refused() {
        let error = choose(STEPS, &["fmt", "nonsense"], true).unwrap_err();
        assert!(error.to_string().contains("no step nonsense"), "{error}");
    }

    #[test]
    fn a_run_stops_at_the_first_failure_with_its_command() {
        let directory = tempfile::tempdir().unwrap();
        let steps = [
            step("first", When::Always, "FLAG=1 touch SCRATCH/first"),
            step("second", When::Always, "test -e SCRATCH/absent"),
            step("third", When::Always, "touch SCRATCH/third"),
        ];
        let error = run_steps(directory.path(), &steps).unwrap_err().to_string();
        assert!(error.contains("cargo xtask ci second"), "{error}");
        assert!(error.contains("test -e SCRATCH/absent"), "{error}");
        let scratch = directory.path().join("target/ci");
        assert!(scratch.join("first").exists());
        assert!(!scratch.join("third").exists());
    }

    #[test]
    fn a_step_that_runs_beside_others_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let slow = beside(step("slow", When::Always, "test -e SCRATCH/absent"));
        let last = step("last", When::Always, "touch SCRATCH/last");
        let error = run_steps(directory.path(), &[slow, last]).unwrap_err().to_string();
        assert!(error.contains("cargo xtask ci slow"), "{error}");
        assert!(directory.path().join("target/ci/last").exists());
        let good = beside(step("good", When::Always, "touch SCRATCH/good"));
        run_steps(directory.path(), &[good, last]).unwrap();
        assert!(directory.path().join("target/ci/good").exists());
        run_steps(directory.path(), &[slow]).unwrap_err();
    }

    #[test]
    fn what_failed_is_shown_again_at_the_end() {
        let output = "test a ... ok\n\nfailures:\n\n---- b stdout ----\nleft: 1\n\nfailures:\n    b\n\n\
                      test result: FAILED. 1 passed\nRunning c\nerror: no such thing\n --> d.rs\n\nlast";
        let shown = failures(output);
        assert!(shown.starts_with("failures:\n\n---- b stdout ----\nleft: 1"), "{shown}");
        assert!(shown.contains("FAILED. 1 passed\nerror: no such thing\n --> d.rs"), "{shown}");
        assert!(!shown.contains("Running") && !shown.contains("last"), "{shown}");
        assert_eq!(failures("test a ... ok\n"), "");
        let many = failures(&"error: one\n\n".repeat(SHOWN));
        assert!(many.ends_with("more lines are above"), "{many}");
    }

    #[test]
    fn a_step_gives_what_it_prints_to_both_streams() {
        let directory = tempfile::tempdir().unwrap();
        let (succeeded, output) = run_step(
            directory.path(),
            &step("both", When::Always, "ls -d . absent"),
            directory.path(),
        )
        .unwrap();
        assert!(!succeeded);
        assert!(output.contains("absent") && output.lines().any(|line| line == "."), "{output}");
    }

    #[test]
    fn variables_of_this_package_do_not_reach_a_command() {
        let directory = tempfile::tempdir().unwrap();
        assert!(std::env::var_os("CARGO_PKG_NAME").is_some(), "cargo runs this test");
        let set = step("set", When::Always, "printenv CARGO_PKG_NAME");
        run_steps(directory.path(), &[set]).unwrap_err();
    }

    #[test]
    fn variables_of_a_step_reach_its_command() {
        let directory = tempfile::tempdir().unwrap();
        let set = step("set", When::Always, "XTASK_VARIABLE=on printenv XTASK_VARIABLE");
        run_steps(directory.path(), &[set]).unwrap();
        let unset = step("unset", When::Always, "printenv XTASK_VARIABLE");
        run_steps(directory.path(), &[unset]).unwrap_err();
    }
}
