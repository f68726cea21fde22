//! `cargo xtask compare`: all comparisons in one run, with a summary.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// A benchmark of the comparison, and the features that it needs.
#[derive(Debug, PartialEq, Eq)]
struct Bench {
    name: String,
    features: Vec<String>,
}

impl Bench {
    fn needs_a_server(&self) -> bool {
        self.features.iter().any(|feature| ["redis", "servers", "service"].contains(&&**feature))
    }
}

/// The rounds of a quick run. Its ratios show the order of magnitude.
const QUICK_ROUNDS: &str = "3";
const MANIFEST: &str = "benches/compare/Cargo.toml";
const RESULTS: &str = "target/compare.json";

/// Runs the benchmarks that are named, or all that need no server, writes their rows to
/// [`RESULTS`], and prints a summary. A benchmark that fails does not end the run, but fails it.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<()> {
    let manifest = std::fs::read_to_string(root.join(MANIFEST)).context(MANIFEST)?;
    let (options, names): (Vec<&str>, Vec<&str>) =
        arguments.iter().partition(|argument| argument.starts_with("--"));
    ensure!(options.iter().all(|option| *option == "--quick"), "the only option is --quick");
    let chosen = choose(benches(&manifest), &names)?;
    let results = root.join(RESULTS);
    if results.exists() {
        std::fs::remove_file(&results).context(RESULTS)?;
    }
    let mut failed = Vec::new();
    for bench in &chosen {
        println!("\n=== {} ===", bench.name);
        let mut command = cargo(root, "bench", &bench.features);
        command.args(["--bench", &bench.name]).env("KEYLOOM_COMPARE_JSON", &results);
        if !options.is_empty() {
            command.env("KEYLOOM_COMPARE_ROUNDS", QUICK_ROUNDS);
        }
        if !command.status()?.success() {
            failed.push(&*bench.name);
        }
    }
    println!();
    let mut summary = cargo(root, "run", &[]);
    summary.args(["--quiet", "--release", "--bin", "summary", "--"]).arg(&results);
    ensure!(summary.status()?.success(), "there is no summary of {RESULTS}");
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

fn cargo(root: &Path, what: &str, features: &[String]) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root).args([what, "-p", "keyloom-compare"]);
    if !features.is_empty() {
        command.args(["--features", &features.join(",")]);
    }
    command
}

fn choose(all: Vec<Bench>, names: &[&str]) -> Result<Vec<Bench>> {
    if names.is_empty() {
        return Ok(all.into_iter().filter(|bench| !bench.needs_a_server()).collect());
    }
    let is_known = |name: &&&str| all.iter().any(|bench| bench.name == **name);
    if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
        let known: Vec<_> = all.iter().map(|bench| &*bench.name).collect();
        bail!("no comparison {unknown}; there are {}", known.join(", "));
    }
    Ok(all.into_iter().filter(|bench| names.contains(&&*bench.name)).collect())
}

/// The `[[bench]]` tables of a manifest.
fn benches(manifest: &str) -> Vec<Bench> {
    manifest
        .split("[[bench]]")
        .skip(1)
        .filter_map(|table| {
            let table = table.split("\n[").next().unwrap_or_default();
            let value = |key: &str| table.lines().find_map(|line| line.strip_prefix(key));
            let quoted = |text: &str| -> Vec<String> {
                text.split('"').skip(1).step_by(2).map(str::to_owned).collect()
            };
            let name = quoted(value("name = ")?).pop()?;
            Some(Bench {
                name,
                features: value("required-features = ").map(quoted).unwrap_or_default(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn bench(name: &str, features: &[&str]) -> Bench {
        let features = features.iter().map(|feature| (*feature).to_owned()).collect();
        Bench { name: name.into(), features }
    }

    #[test]
    fn benches_are_read_with_their_features() {
        let manifest = "[[bench]]\nname = \"a\"\nharness = false\n\n[[bench]]\nname = \"b\"\n\
                        required-features = [\"x\", \"y\"]\n\n[lints]\nname = \"no\"\n";
        assert_eq!(benches(manifest), [bench("a", &[]), bench("b", &["x", "y"])]);
    }

    #[test]
    fn every_comparison_of_the_repository_is_found() {
        let manifest = std::fs::read_to_string(crate::root().unwrap().join(MANIFEST)).unwrap();
        let found = benches(&manifest);
        assert_eq!(found.len(), manifest.matches("[[bench]]").count());
        assert!(found.iter().any(Bench::needs_a_server));
    }

    #[test]
    fn those_with_a_server_run_only_if_named() {
        let all = || vec![bench("a", &[]), bench("b", &["servers"]), bench("c", &["tantivy"])];
        let names = |chosen: Vec<Bench>| chosen.into_iter().map(|one| one.name).collect::<Vec<_>>();
        assert_eq!(names(choose(all(), &[]).unwrap()), ["a", "c"]);
        assert_eq!(names(choose(all(), &["b"]).unwrap()), ["b"]);
        assert!(choose(all(), &["d"]).unwrap_err().to_string().contains("no comparison d"));
    }
}
