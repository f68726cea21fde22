//! A copy of the project that contains bugs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::areas;
use crate::run::messages;
use crate::sites::{self, Site};

/// The switch, which is appended to the copy's `src/lib.rs`.
const SWITCH: &str = r#"
extern crate self as keyloom;
/// Whether bug `number` is active in this process.
#[doc(hidden)]
pub fn planted(number: u32) -> bool {
    static PLANTED: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    let read = || std::env::var("KEYLOOM_PLANTED").ok()?.parse().ok();
    *PLANTED.get_or_init(|| read().unwrap_or(0)) == number
}
"#;

/// A bug: its number, from 1, its location, and its site.
#[derive(Clone, Debug)]
pub struct Planted {
    pub number: u32,
    pub path: String,
    site: Site,
    sound: String,
}

impl fmt::Display for Planted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, path, site, sound, .. } = self;
        let sound = one_line(sound);
        match &site.bug {
            sites::Bug::Instead(bug) => {
                write!(f, "{number:4} {path}:{} `{sound}` became `{}`", site.line, one_line(bug))
            }
            sites::Bug::LeftOut => {
                write!(f, "{number:4} {path}:{} `{sound}` is left out", site.line)
            }
        }
    }
}

fn one_line(text: &str) -> String {
    one_line_of_all(text).chars().take(120).collect()
}

/// The copy.
pub struct Tree {
    path: PathBuf,
    /// The original text of each file that belongs to an area.
    sources: BTreeMap<String, String>,
    /// Changes that are not bugs: path and text.
    no_bugs: BTreeSet<(String, String)>,
}

/// Changes that are not bugs, each with a path, a text and the reason on one line.
const NO_BUGS: &str = include_str!("../no_bugs.txt");

fn no_bugs(sources: &BTreeMap<String, String>) -> Result<BTreeSet<(String, String)>> {
    let mut listed = BTreeSet::new();
    for line in NO_BUGS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut parts = line.split(" | ");
        let (Some(path), Some(text), Some(_why)) = (parts.next(), parts.next(), parts.next())
        else {
            bail!("no_bugs.txt: a path, a text and a reason, with \" | \" between them: {line}");
        };
        let source = sources.get(path).map(|source| one_line_of_all(source));
        ensure!(source.is_some_and(|s| s.contains(text)), "no_bugs.txt: not in the file: {line}");
        listed.insert((path.to_owned(), text.to_owned()));
    }
    Ok(listed)
}

fn one_line_of_all(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Tree {
    /// Copies the files that git tracks. Unchanged files are left alone, so that they are not
    /// rebuilt.
    pub fn copy(path: &Path) -> Result<Self> {
        let listed = Command::new("git").args(["ls-files", "-z"]).output()?;
        ensure!(listed.status.success(), "git does not list the files; run it in the project");
        let mut sources = BTreeMap::new();
        for name in String::from_utf8(listed.stdout)?.split('\0').filter(|name| !name.is_empty()) {
            let Ok(bytes) = fs::read(name) else { continue };
            if areas::of(name).is_some() {
                sources.insert(name.to_owned(), String::from_utf8(bytes)?);
                continue;
            }
            let bytes = match name {
                "src/lib.rs" => [&bytes, SWITCH.as_bytes()].concat(),
                _ => bytes,
            };
            write_if_other(&path.join(name), &bytes)?;
            // The permissions are copied, too, because tests run scripts.
            fs::set_permissions(path.join(name), fs::metadata(name)?.permissions())?;
        }
        let path = fs::canonicalize(path)?;
        let no_bugs = no_bugs(&sources)?;
        Ok(Self { path, sources, no_bugs })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Plants `count` bugs, equally many in each area, and leaves out those that do not compile.
    pub fn plant(
        &mut self,
        count: usize,
        seed: u64,
        areas: &[String],
        at: &[String],
        features: &str,
    ) -> Result<Vec<Planted>> {
        let mut drawn = self.draw(seed, areas, at)?;
        let mut bugs = Vec::new();
        for _ in 0..12 {
            top_up(&mut bugs, &mut drawn, count);
            self.write(&bugs)?;
            let wrong = self.lines_that_do_not_compile(features)?;
            if wrong.is_empty() {
                return Ok(numbered(bugs));
            }
            let before = bugs.len();
            bugs = self.without(bugs, &wrong);
            ensure!(bugs.len() < before, "the copy does not compile, and not for a bug: {wrong:?}");
        }
        bail!("the bugs do not compile, after twelve tries")
    }

    /// All sites of each area, or those on some lines, shuffled.
    fn draw(
        &self,
        seed: u64,
        wanted: &[String],
        at: &[String],
    ) -> Result<BTreeMap<&'static str, Vec<Planted>>> {
        let mut by_area: BTreeMap<&str, Vec<Planted>> = BTreeMap::new();
        for (path, source) in &self.sources {
            let area = areas::of(path).context("a file without an area")?;
            if !wanted.is_empty() && !wanted.iter().any(|name| name == area) {
                continue;
            }
            let found = sites::find(source).with_context(|| format!("{path} does not parse"))?;
            by_area.entry(area).or_default().extend(
                found
                    .into_iter()
                    .map(|site| {
                        let sound = source.get(site.place.clone()).unwrap_or_default().to_owned();
                        Planted { number: 0, path: path.clone(), site, sound }
                    })
                    .filter(|bug| {
                        let place = format!("{path}:{}", bug.site.line);
                        let is_listed =
                            self.no_bugs.contains(&(path.clone(), one_line_of_all(&bug.sound)));
                        if at.is_empty() { !is_listed } else { at.contains(&place) }
                    }),
            );
        }
        let mut random = fastrand::Rng::with_seed(seed);
        by_area.values_mut().for_each(|sites| random.shuffle(sites));
        Ok(by_area)
    }

    fn write(&self, bugs: &[Planted]) -> Result<()> {
        for (path, source) in &self.sources {
            let here = (1..).zip(bugs).filter(|(_, bug)| bug.path == *path);
            let here: Vec<(u32, &Site)> = here.map(|(n, bug)| (n, &bug.site)).collect();
            write_if_other(&self.path.join(path), sites::plant(source, &here).as_bytes())?;
        }
        Ok(())
    }

    /// The files and lines of compiler errors.
    fn lines_that_do_not_compile(&self, features: &str) -> Result<BTreeSet<(String, usize)>> {
        let mut cargo = cargo(&self.path);
        cargo.args([
            "check",
            "--locked",
            "--keep-going",
            "--message-format=json",
            "--features",
            features,
        ]);
        cargo.args(["-p", "keyloom", "-p", "keyloom-patterns"]).stderr(Stdio::null());
        let mut wrong = BTreeSet::new();
        for message in messages(&cargo.output()?.stdout) {
            let said = &message["message"];
            if said["level"] != "error" {
                continue;
            }
            for span in said["spans"].as_array().into_iter().flatten() {
                let line = span["line_start"].as_u64().unwrap_or(0) as usize;
                let file = span["file_name"].as_str().unwrap_or_default();
                // Cargo gives the files of a workspace member relative to the root or to the
                // member.
                let file = file.strip_prefix("./").unwrap_or(file).to_owned();
                wrong.insert((file, line));
            }
        }
        Ok(wrong)
    }

    fn without(&self, bugs: Vec<Planted>, wrong: &BTreeSet<(String, usize)>) -> Vec<Planted> {
        let line_of = |bug: &Planted, number: u32| -> Option<usize> {
            let planted = fs::read_to_string(self.path.join(&bug.path)).ok()?;
            let at = planted.find(&format!("planted({number})"))?;
            Some(planted.get(..at)?.lines().count())
        };
        let is_wrong = |bug: &Planted, number: u32| {
            line_of(bug, number).is_some_and(|line| {
                let lines = line..=line + bug.sound.lines().count() * 2;
                wrong
                    .iter()
                    .any(|(file, at)| bug.path.ends_with(file.as_str()) && lines.contains(at))
            })
        };
        (1..)
            .zip(bugs)
            .filter(|(number, bug)| !is_wrong(bug, *number))
            .map(|(_, bug)| bug)
            .collect()
    }
}

/// Adds sites that do not overlap, from each area in turn, up to `count`.
fn top_up(bugs: &mut Vec<Planted>, drawn: &mut BTreeMap<&'static str, Vec<Planted>>, count: usize) {
    while bugs.len() < count && drawn.values().any(|sites| !sites.is_empty()) {
        for sites in drawn.values_mut() {
            let overlaps = |site: &Planted| {
                bugs.iter().any(|bug: &Planted| {
                    let (a, b) = (&bug.site.place, &site.site.place);
                    bug.path == site.path && a.start < b.end && b.start < a.end
                })
            };
            let free = sites.iter().rposition(|site| !overlaps(site));
            match free {
                Some(free) if bugs.len() < count => bugs.push(sites.remove(free)),
                Some(_) => {}
                None => sites.clear(),
            }
        }
    }
}

fn numbered(bugs: Vec<Planted>) -> Vec<Planted> {
    (1..).zip(bugs).map(|(number, bug)| Planted { number, ..bug }).collect()
}

/// Cargo in the copy. Warnings and lints are allowed, because a bug may cause them.
pub fn cargo(tree: &Path) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(tree).env("CARGO_TARGET_DIR", tree.join("target"));
    cargo.env("RUSTFLAGS", "--cap-lints=allow");
    cargo
}

fn write_if_other(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
