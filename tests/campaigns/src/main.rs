//! The command line of the campaigns.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use clap::Parser;
use keyloom_campaigns::record::Record;
use keyloom_campaigns::{Budget, Campaign, Context, Failure, Mix, campaigns, promises};

/// Attacks what keyloom promises.
#[derive(Parser)]
#[command(name = "cargo campaign")]
struct Arguments {
    /// A campaign; `list` tells them, `ci` runs the small form of all, `release`
    /// the full form, `promises` writes the table of promises from the result files
    campaign: String,
    /// How many to do [default: the small form]
    #[arg(long, conflicts_with = "seconds")]
    count: Option<u64>,
    /// How long to go on, instead of a count
    #[arg(long)]
    seconds: Option<u64>,
    /// What all random choices come from [default: another each time]
    #[arg(long)]
    seed: Option<u64>,
    /// Only this workload [default: all of them, mixed]
    #[arg(long)]
    workload: Option<String>,
    /// Where to write `<campaign>.json`
    #[arg(long)]
    results: Option<PathBuf>,
}

fn main() -> ExitCode {
    // A process of a campaign's own says in the environment what it is for.
    if let Some(outcome) = campaigns::child() {
        return told(outcome);
    }
    told(run(&Arguments::parse()))
}

fn told(outcome: Result<()>) -> ExitCode {
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
        "ci" => all.iter().map(|one| &**one).filter(|one| one.counts().0 > 0).collect(),
        "release" => all.iter().map(|one| &**one).collect(),
        name => all.iter().map(|one| &**one).filter(|one| one.name() == name).collect(),
    };
    let names: Vec<_> = all.iter().map(|campaign| campaign.name()).collect();
    ensure!(!chosen.is_empty(), "no campaign {:?}: there are {names:?}", arguments.campaign);
    let stop = Arc::new(AtomicBool::new(false));
    ctrlc::set_handler({
        let stop = stop.clone();
        // The second time it ends at once.
        move || {
            if stop.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        }
    })?;
    let mut unsound = Vec::new();
    for campaign in chosen {
        if stop.load(Ordering::Relaxed) {
            bail!("stopped before {}", campaign.name());
        }
        if !run_one(campaign, arguments, is_release, &stop)? {
            unsound.push(campaign.name());
        }
    }
    ensure!(unsound.is_empty(), "failed: {}", unsound.join(", "));
    Ok(())
}

fn list(all: &[Box<dyn Campaign>]) -> Result<()> {
    for campaign in all {
        let (small, full) = campaign.counts();
        println!(
            "{:<12} {} ({small} {unit}; {full} before a release)",
            campaign.name(),
            campaign.about(),
            unit = campaign.unit()
        );
    }
    println!("workloads: {}", Mix::new(None)?.names().join(", "));
    Ok(())
}

/// Runs a campaign and its controls, and tells what came of it. Whether all is well.
fn run_one(
    campaign: &dyn Campaign,
    arguments: &Arguments,
    is_release: bool,
    stop: &Arc<AtomicBool>,
) -> Result<bool> {
    if let Some(obstacle) = campaign.obstacle() {
        println!("{}: not run, {obstacle}", campaign.name());
        // Whoever asks for all of them must have them all.
        return Ok(false);
    }
    let (small, full) = campaign.counts();
    let budget = match (arguments.count, arguments.seconds) {
        (Some(count), _) => Budget::Count(count),
        (_, Some(seconds)) => Budget::Time(Duration::from_secs(seconds)),
        _ if is_release || small == 0 => Budget::Count(full),
        _ => Budget::Count(small),
    };
    let seed = arguments.seed.unwrap_or_else(|| fastrand::u64(..));
    let mix = Mix::new(arguments.workload.as_deref())?;
    let begun = Instant::now();
    let mut context = Context::new(budget, seed, mix, stop.clone())?;
    context.show(campaign)?;
    let mut tally = campaign.run(&context)?;
    if small > 0 && tally.count >= small {
        let unseen: Vec<_> = tally.unseen(campaign.must_see()).collect();
        tally.failures.extend(unseen.into_iter().map(|what| Failure {
            what: format!("of {} {} none: {what}", tally.count, campaign.unit()),
            sequence: Vec::new(),
        }));
    }
    context.hide();
    let seconds = begun.elapsed().as_secs_f64();
    let controls = campaign.controls(&context)?;

    for failure in &tally.failures {
        println!("{}, --seed {seed}: {failure}", campaign.name());
    }
    for control in controls.iter().filter(|control| !control.caught) {
        println!(
            "{}, --seed {seed}: the control was not caught: {}",
            campaign.name(),
            control.name
        );
    }
    let caught = controls.iter().filter(|control| control.caught).count();
    let details: String =
        tally.details.iter().map(|(what, count)| format!(", {count} {what}")).collect();
    println!(
        "{}: {} {}{details}; {} failures; {caught} of {} controls caught; {seconds:.1} s, seed {seed}",
        campaign.name(),
        tally.count,
        campaign.unit(),
        tally.failures.len(),
        controls.len(),
    );
    let workload = arguments.workload.iter().map(|name| format!(" --workload {name}"));
    let amount = match budget {
        Budget::Count(count) => format!("--count {count}"),
        Budget::Time(time) => format!("--seconds {}", time.as_secs()),
    };
    let record = Record {
        campaign: campaign.name().into(),
        command: format!(
            "cargo campaign {} {amount} --seed {seed}{}",
            campaign.name(),
            workload.collect::<String>()
        ),
        date: today(),
        seed: Some(seed),
        count: tally.count,
        unit: campaign.unit().into(),
        failures: tally.failures.len() as u64,
        seconds: (seconds * 10.0).round() / 10.0,
        controls: controls.into_iter().map(|control| (control.name, control.caught)).collect(),
        details: tally.details,
    };
    if let Some(directory) = &arguments.results {
        record.save(directory)?;
    }
    Ok(record.is_sound())
}

/// The day in UTC, `2026-11-21`.
fn today() -> String {
    let now = std::time::SystemTime::now();
    jiff::Timestamp::try_from(now)
        .map_or_else(|_| "unknown".into(), |now| now.strftime("%F").to_string())
}
