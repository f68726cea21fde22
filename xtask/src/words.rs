//! Automatic wording checks: words in comments and names of functions, the width of comments, and
//! the length of test names.
//!
//! Findings that are older than the check are counted per crate in `words_allowed.txt`. A count may
//! only decrease.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

const BANNED: &str = include_str!("../words.txt");
const ALLOWED: &str = "xtask/words_allowed.txt";
const WIDEST_COMMENT: usize = 100;
const LONGEST_TEST_NAME: usize = 60;
const FOLDERS: [&str; 10] = [
    "backends", "benches", "book", "cli", "derive", "examples", "patterns", "src", "tests", "xtask",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Print {
    Summary,
    Findings,
}

#[derive(Debug, PartialEq, Eq)]
struct Finding {
    line: usize,
    kind: &'static str,
    text: String,
}

/// Findings by crate and kind.
type Counts = BTreeMap<(String, String), usize>;

/// Fails if a crate has more findings of a kind than it is allowed.
pub(crate) fn check(root: &Path, print: Print) -> Result<()> {
    let (counts, findings) = gather(root)?;
    if print == Print::Findings {
        findings.iter().for_each(|finding| println!("{finding}"));
    }
    let allowed = read_allowed(root)?;
    let worse = worse(&counts, &allowed);
    println!(
        "{} findings, {} allowed",
        counts.values().sum::<usize>(),
        allowed.values().sum::<usize>()
    );
    if worse.is_empty() {
        return Ok(());
    }
    bail!("{}\nsee them: cargo xtask words --list; the words: xtask/words.txt", worse.join("\n"))
}

/// Writes the current counts, none of which may be higher than allowed.
pub(crate) fn lower(root: &Path) -> Result<()> {
    let (counts, _) = gather(root)?;
    let path = root.join(ALLOWED);
    if path.exists() {
        let worse = worse(&counts, &read_allowed(root)?);
        ensure!(worse.is_empty(), "{}", worse.join("\n"));
    }
    let lines = counts.iter().map(|((package, kind), count)| format!("{package} {kind} {count}\n"));
    fs::write(&path, lines.collect::<String>()).with_context(|| path.display().to_string())
}

fn worse(counts: &Counts, allowed: &Counts) -> Vec<String> {
    let most = |key: &(String, String)| allowed.get(key).copied().unwrap_or_default();
    let worse = counts.iter().filter(|(key, count)| **count > most(key));
    let line = |(key, count): (&(String, String), &usize)| {
        format!("{}: {count} findings of `{}`, {} allowed", key.0, key.1, most(key))
    };
    worse.map(line).collect()
}

fn read_allowed(root: &Path) -> Result<Counts> {
    let path = root.join(ALLOWED);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let line = |line: &str| {
        let [package, kind, count] = line.split(' ').collect::<Vec<_>>()[..] else {
            bail!("{ALLOWED}: {line:?} is not a crate, a kind and a count");
        };
        Ok(((package.to_owned(), kind.to_owned()), count.parse()?))
    };
    text.lines().map(line).collect()
}

fn gather(root: &Path) -> Result<(Counts, Vec<impl fmt::Display>)> {
    let mut files = Vec::new();
    for folder in FOLDERS.iter().map(|folder| root.join(folder)).filter(|folder| folder.is_dir()) {
        list(&folder, &mut files)?;
    }
    files.push(root.join("README.md"));
    files.sort();
    let (mut counts, mut lines) = (Counts::new(), Vec::new());
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        let is_chapter = name.ends_with(".md");
        for Finding { line, kind, text } in findings(&text, is_chapter) {
            *counts.entry((package(root, &file), kind.to_owned())).or_default() += 1;
            lines.push(format!("{name}:{line}: {kind}: {text}"));
        }
    }
    Ok((counts, lines))
}

fn list(folder: &Path, files: &mut Vec<std::path::PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let is_text = path.extension().is_some_and(|end| end == "rs" || end == "md");
        if path.is_dir() && !path.ends_with("target") {
            list(&path, files)?;
        } else if is_text {
            files.push(path);
        }
    }
    Ok(())
}

/// The folder of the crate that a file belongs to.
fn package(root: &Path, file: &Path) -> String {
    let of = file.ancestors().skip(1).find(|folder| folder.join("Cargo.toml").exists());
    let of = of
        .and_then(|folder| folder.strip_prefix(root).ok())
        .map(|folder| folder.display().to_string());
    of.filter(|name| !name.is_empty()).unwrap_or_else(|| "keyloom".to_owned())
}

fn findings(text: &str, is_chapter: bool) -> Vec<Finding> {
    let of_list = BANNED.lines().filter(|line| !line.starts_with('#'));
    let in_names: Vec<&str> =
        of_list.filter_map(|line| line.split_once(": ")).map(|(word, _)| word).collect();
    let banned = in_names.iter().copied().filter(|word| !word.starts_with("fn "));
    let banned: Vec<&str> = banned.collect();
    let (mut found, mut is_test, mut is_code) = (Vec::new(), false, false);
    for (number, line) in text.lines().enumerate() {
        let mut add = |kind, text: &str| {
            found.push(Finding { line: number + 1, kind, text: text.to_owned() })
        };
        let trimmed = line.trim_start();
        if is_chapter && trimmed.starts_with("```") {
            is_code = !is_code;
        }
        let comment = if is_chapter { (!is_code).then_some(line) } else { comment(trimmed) };
        if let Some(comment) = comment {
            let lower = comment.to_lowercase();
            let words = banned.iter().filter(|word| has_word(&lower, word));
            words.for_each(|word| add("words", word));
            let width = line.chars().count();
            // Table rows and links cannot be wrapped.
            let is_whole =
                comment.contains('|') || comment.contains("](") || comment.contains("://");
            if !is_chapter && width > WIDEST_COMMENT && !is_whole {
                add("width", &format!("{width} columns"));
            }
        }
        if let Some(name) = function(trimmed).filter(|_| !is_chapter) {
            let name = name.replace('_', " ");
            let words = in_names.iter().map(|word| word.strip_prefix("fn ").unwrap_or(word));
            words.filter(|word| has_word(&name, word)).for_each(|word| add("names", word));
        }
        if let Some(name) = trimmed.strip_prefix("fn ").filter(|_| is_test) {
            let name = name.split('(').next().unwrap_or_default();
            if name.len() > LONGEST_TEST_NAME {
                add("test-name", name);
            }
        }
        is_test = trimmed == "#[test]" || is_test && trimmed.starts_with("#[");
    }
    found
}

/// The name of the function that starts on a line.
fn function(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_declared = before.split_whitespace().all(|word| {
        word.starts_with("pub") || ["const", "unsafe", "async", "extern", "\"C\""].contains(&word)
    });
    after.split(['(', '<']).next().filter(|_| is_declared)
}

/// The text of a comment line.
fn comment(line: &str) -> Option<&str> {
    line.strip_prefix("//").map(|text| text.trim_start_matches(['/', '!']))
}

fn has_word(text: &str, word: &str) -> bool {
    let is_letter =
        |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '`');
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (text.get(..at), text.get(at + word.len()..));
        !is_letter(before.and_then(|text| text.chars().next_back()))
            && !is_letter(after.and_then(|text| text.chars().next()))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn kinds(text: &str, is_chapter: bool) -> Vec<(usize, &'static str)> {
        findings(text, is_chapter).into_iter().map(|finding| (finding.line, finding.kind)).collect()
    }

    #[test]
    fn every_folder_with_code_is_read() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let folders = fs::read_dir(root).unwrap().map(|entry| entry.unwrap());
        let folders = folders.filter(|entry| entry.path().is_dir());
        let mut names: Vec<_> =
            folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.retain(|name| !name.starts_with('.') && name != "target");
        names.sort();
        assert_eq!(names, FOLDERS);
    }

    #[test]
    fn a_banned_word_is_found_in_the_name_of_a_function() {
        let names =
            "pub(super) fn mend_one(&self) {\nlet mend = 1;\nfn amend<T>() {\nfn it_goes_on() {\n";
        assert_eq!(kinds(names, false), [(1, "names"), (4, "names")]);
        assert_eq!(kinds("// It goes on.\n", false), []);
        assert_eq!(kinds("```\nfn mend()\n```\n", true), []);
    }

    #[test]
    fn a_banned_word_is_found_in_comments_and_chapters() {
        assert_eq!(kinds("/// It is written anew.\nlet anew = 1;\n", false), [(1, "words")]);
        assert_eq!(
            kinds("Nobody waits.\n```\n// nobody\n```\nAnew.\n", true),
            [(1, "words"), (5, "words")]
        );
        assert_eq!(kinds("/// A renewal; `tells` is a name.\n", false), []);
    }

    #[test]
    fn a_wide_comment_is_found_unless_it_is_a_row() {
        let wide = "x ".repeat(60);
        assert_eq!(kinds(&format!("// {wide}\n"), false), [(1, "width")]);
        assert_eq!(kinds(&format!("//! | {wide} |\n"), false), []);
    }

    #[test]
    fn a_long_name_is_found_in_tests_only() {
        let name = "a".repeat(61);
        assert_eq!(kinds(&format!("#[test]\nfn {name}() {{\n"), false), [(2, "test-name")]);
        assert_eq!(kinds(&format!("fn {name}() {{\n"), false), []);
    }

    #[test]
    fn a_count_that_rises_is_refused() {
        let counts = |count| Counts::from([(("src".to_owned(), "words".to_owned()), count)]);
        assert!(worse(&counts(3), &counts(3)).is_empty());
        assert_eq!(worse(&counts(4), &counts(3)), ["src: 4 findings of `words`, 3 allowed"]);
        assert_eq!(worse(&counts(1), &Counts::new()).len(), 1);
    }
}
