//! The command line of the campaigns.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use clap::Parser;
use keyloom_campaigns::campaign::again;
use keyloom_campaigns::record::Record;
use keyloom_campaigns::{
    Budget, Campaign, Context, Control, Facts, Failure, Mix, Tally, campaigns, promises,
};

/// Attacks the promises of keyloom.
#[derive(Parser)]
#[command(name = "cargo campaign")]
struct Arguments {
    /// A campaign; `list` prints all names, `ci` runs the small form of all, `release` the full
    /// form, `promises` writes the table of promises from the result files
    campaign: String,
    /// The count [default: the small form]
    #[arg(long, conflicts_with = "seconds")]
    count: Option<u64>,
    /// The run time in seconds, instead of a count
    #[arg(long)]
    seconds: Option<u64>,
    /// The seed of all random choices [default: a new one each time]
    #[arg(long)]
    seed: Option<u64>,
    /// Only this workload [default: all of them, mixed]
    #[arg(long)]
    workload: Option<String>,
    /// Only the episode with this number, for `kill`
    #[arg(long)]
    episode: Option<u64>,
    /// Only this form and its controls, for `kill`
    #[arg(long)]
    form: Option<String>,
    /// The directory for `<campaign>.json`
    #[arg(long)]
    results: Option<PathBuf>,
}

fn main() -> ExitCode {
    // A child process of a campaign finds its role in the environment.
    if let Some(outcome) = campaigns::child() {
        return reported(outcome);
    }
    reported(run(&Arguments::parse()))
}

fn reported(outcome: Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let all = campaigns::all();
    let is_release = arguments.campaign == "release";
    let chosen: Vec<&dyn Campaign> = match arguments.campaign.as_str() {
        "list" => return list(&all),
        "promises" => return promises::write(),
        "ci" => all.iter().map(|one| &**one).filter(|one| one.facts().counts.0 > 0).collect(),
        "release" => all.iter().map(|one| &**one).collect(),
        name => all.iter().map(|one| &**one).filter(|one| one.facts().name == name).collect(),
    };
    let names: Vec<_> = all.iter().map(|campaign| campaign.facts().name).collect();
    ensure!(!chosen.is_empty(), "no campaign {:?}: there are {names:?}", arguments.campaign);
    if let [only] = &chosen[..] {
        let Facts { name, beneath_workloads, has_episodes, forms, .. } = only.facts();
        let takes_it = arguments.workload.is_none() || !beneath_workloads;
        ensure!(takes_it, "{name} attacks what lies beneath the workloads, and takes none");
        let has_it = arguments.episode.is_none() || has_episodes;
        ensure!(has_it, "{name} has no episodes");
        if let Some(form) = &arguments.form {
            ensure!(forms.contains(&&**form), "{name} has no form {form:?}: there are {forms:?}");
        }
    } else {
        let names_one =
            arguments.workload.is_some() || arguments.episode.is_some() || arguments.form.is_some();
        ensure!(!names_one, "a workload, an episode or a form is that of one campaign: name it");
    }
    // The attacked commit is the one checked out now, whatever is checked out later.
    commit();
    let stop = Arc::new(AtomicBool::new(false));
    ctrlc::set_handler({
        let stop = stop.clone();
        // The second interrupt ends the program at once.
        move || {
            if stop.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        }
    })?;
    let mut unsound = Vec::new();
    for campaign in chosen {
        if stop.load(Ordering::Relaxed) {
            bail!("stopped before {}", campaign.facts().name);
        }
        if !run_one(campaign, arguments, is_release, &stop)? {
            unsound.push(campaign.facts().name);
        }
    }
    ensure!(unsound.is_empty(), "failed: {}", unsound.join(", "));
    Ok(())
}

fn list(all: &[Box<dyn Campaign>]) -> Result<()> {
    for campaign in all {
        let Facts { name, about, unit, counts: (small, full), beneath_workloads, .. } =
            campaign.facts();
        let workload = if beneath_workloads { "" } else { "; --workload" };
        println!("{name:<16} {about} ({small} {unit}; {full} before a release){workload}");
    }
    for (script, about) in SCRIPTS {
        println!("{script:<16} {about}");
    }
    println!("workloads: {}", Mix::new(None)?.names().join(", "));
    Ok(())
}

/// Campaigns that are scripts with their own controls.
const SCRIPTS: [(&str, &str); 4] = [
    ("tests/fuzz/run.sh", "hostile bytes, bred by a fuzzer, for every decoder and pattern"),
    ("tests/mutants.sh", "changes of the encoding of keys and of ranges: does a test notice?"),
    ("tests/memory.sh", "the tests of the core under AddressSanitizer and Valgrind"),
    ("tests/miri.sh", "the tests of the core in Miri, on a nightly toolchain"),
];

/// Runs a campaign and its controls, and prints the result. Returns whether all passed.
fn run_one(
    campaign: &dyn Campaign,
    arguments: &Arguments,
    is_release: bool,
    stop: &Arc<AtomicBool>,
) -> Result<bool> {
    let Facts { name, unit, counts: (small, full), .. } = campaign.facts();
    if let Some(obstacle) = campaign.obstacle() {
        println!("{name}: not run, {obstacle}");
        // `ci` and `release` fail if a campaign cannot run.
        return Ok(false);
    }
    let budget = match (arguments.count, arguments.seconds) {
        (Some(count), _) => Budget::Count(count),
        (_, Some(seconds)) => Budget::Time(Duration::from_secs(seconds)),
        _ if is_release || small == 0 => Budget::Count(full),
        _ => Budget::Count(small),
    };
    let seed = arguments.seed.unwrap_or_else(|| fastrand::u64(..));
    println!("{name}: seed {seed}");
    let mix = Mix::new(arguments.workload.as_deref())?;
    let workloads = if campaign.facts().beneath_workloads { Vec::new() } else { mix.names() };
    let mut amount = match budget {
        Budget::Count(count) => format!("--count {count}"),
        Budget::Time(time) => format!("--seconds {}", time.as_secs()),
    };
    if let Some(form) = &arguments.form {
        amount += &format!(" --form {form}");
    }
    let command = again(name, &amount, seed, arguments.workload.as_deref());
    let mut context = Context::new(campaign, budget, seed, mix, stop.clone())?;
    context.episode = arguments.episode;
    context.form.clone_from(&arguments.form);

    let begun = Instant::now();
    context.show(unit)?;
    let mut tally = outcome(|| campaign.run(&context))
        .unwrap_or_else(|failure| Tally { failures: vec![failure], ..Tally::default() });
    // A single form covers only a part of what must be seen.
    if small > 0 && tally.count >= small && arguments.form.is_none() {
        let unseen: Vec<_> = tally.unseen(campaign.facts().must_see).collect();
        tally.failures.extend(unseen.into_iter().map(|what| Failure {
            what: format!("of {} {unit} none: {what}", tally.count),
            ..Failure::default()
        }));
    }
    context.hide();
    let seconds = begun.elapsed().as_secs_f64();

    let begun = Instant::now();
    context.show_controls()?;
    let controls = outcome(|| campaign.controls(&context)).unwrap_or_else(|failure| {
        tally.failures.push(Failure { what: format!("the controls: {}", failure.what), ..failure });
        Vec::new()
    });
    context.hide();
    let control_seconds = begun.elapsed().as_secs_f64();

    for failure in &mut tally.failures {
        if failure.again.is_empty() {
            failure.again.clone_from(&command);
        }
        println!("{name}, seed {seed}: {failure}");
    }
    for Control { name: control, instead, .. } in controls.iter().filter(|control| !control.held) {
        println!("{name}, seed {seed}: the control does not hold: {control}: {instead}");
    }
    let held = controls.iter().filter(|control| control.held).count();
    let details: String =
        tally.details.iter().map(|(what, count)| format!(", {count} {what}")).collect();
    println!(
        "{name}: {} {unit}{details}; {} failures; {seconds:.1} s; {held} of {} controls held; \
         {control_seconds:.1} s; seed {seed}",
        tally.count,
        tally.failures.len(),
        controls.len(),
    );
    let record = Record {
        campaign: name.into(),
        command,
        date: today(),
        commit: commit(),
        workloads: workloads.into_iter().map(str::to_owned).collect(),
        seed: Some(seed),
        count: tally.count,
        unit: unit.into(),
        failures: tally.failures.len() as u64,
        seconds: (seconds * 10.0).round() / 10.0,
        controls: controls.into_iter().map(|control| (control.name, control.held)).collect(),
        details: tally.details,
    };
    if let Some(directory) = &arguments.results {
        record.save(directory)?;
    }
    Ok(record.is_sound())
}

/// The outcome of some work. An error or a panic is reported as a failure, and does not end the
/// program.
fn outcome<T>(work: impl FnOnce() -> Result<T>) -> Result<T, Failure> {
    let what = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(done)) => return Ok(done),
        Ok(Err(error)) => format!("it cannot go on: {error:#}"),
        Err(panic) => format!("it panics: {}", campaigns::said(&*panic)),
    };
    Err(Failure { what, ..Failure::default() })
}

/// Today's date in UTC, `2026-11-21`.
fn today() -> String {
    let now = std::time::SystemTime::now();
    jiff::Timestamp::try_from(now)
        .map_or_else(|_| "unknown".into(), |now| now.strftime("%F").to_string())
}

/// The checked-out commit, with a `+` if files other than result files have changed.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(promises::root()).output();
        let output = output.ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    static FOUND: OnceLock<String> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let Some(commit) = git(&["rev-parse", "--short", "HEAD"]) else { return String::new() };
        let others = git(&["status", "--porcelain", "--", ":!tests/campaigns/results"]);
        if others.is_some_and(|others| others.is_empty()) { commit } else { commit + "+" }
    });
    found.clone()
}
