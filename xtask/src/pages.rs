//! `cargo xtask pages`: the programs of the README and the book, as a reader would copy them.
//!
//! The doctests compile a program inside the workspace, with the dependencies of the book's crate
//! and with the lines that a page hides. A reader has neither. So every complete program, a Rust
//! block with a `main` function, becomes a file of a package outside the workspace. The package has
//! the dependencies that the page shows and nothing else.
//!
//! Planted mistakes must fail: a hidden import, and a missing dependency.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

const README: &str = "README.md";
const CHAPTERS: &str = "book/src";
/// The chapter that shows the dependencies of all others.
const INTRODUCTION: &str = "book/src/introduction.md";
/// The beginning of the manifest that `cargo new` writes.
const PACKAGE: &str = "[package]\nname = \"copied\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n";
/// The path of the checkout in the shown manifests.
const CHECKOUT: &str = "\"../keyloom";
/// This crate enables features of keyloom that a program could need by mistake.
const BOOK: &str = "keyloom-book";
/// A crate that is built only where its client library is installed.
const NOT_BUILT: &str = "keyloom-foundationdb";

/// A block of a page: its first line, its language, and its text.
struct Block<'t> {
    line: usize,
    language: &'t str,
    lines: Vec<&'t str>,
}

/// The blocks that begin at the left margin. The tests of the book refuse other fences.
fn blocks(text: &str) -> Vec<Block<'_>> {
    let (mut blocks, mut open) = (Vec::new(), None);
    for (n, text) in text.lines().enumerate() {
        open = match (open.take(), text.strip_prefix("```")) {
            (None, Some(language)) => Some(Block { line: n + 2, language, lines: Vec::new() }),
            (None, None) => None,
            (Some(block), Some("")) => {
                blocks.push(block);
                None
            }
            (Some(mut block), _) => {
                block.lines.push(text);
                Some(block)
            }
        };
    }
    blocks
}

/// What mdBook's copy button yields for a line of Rust: nothing for a line that begins with `#` and
/// a space, and one `#` for two.
fn copied(line: &str) -> Option<String> {
    let text = line.trim_start();
    let indent = &line[..line.len() - text.len()];
    match text.strip_prefix('#') {
        Some(rest) if rest.is_empty() || rest.starts_with(' ') => None,
        Some(rest) if rest.starts_with('#') => Some(format!("{indent}{rest}")),
        _ => Some(line.to_owned()),
    }
}

/// The text that a reader copies from a block. A README is shown with all of its lines.
fn text_of(block: &Block<'_>, is_book: bool) -> String {
    let lines = block.lines.iter();
    let lines = lines.filter_map(|line| if is_book { copied(line) } else { Some((*line).into()) });
    lines.map(|line| line + "\n").collect()
}

/// A complete program. Its name consists of the page and the line.
#[derive(Debug, PartialEq, Eq)]
struct Program {
    name: String,
    text: String,
}

impl Program {
    fn names_the_book(&self) -> bool {
        self.text.contains("keyloom_book::")
    }
}

/// The complete programs of a page.
fn programs(page: &str, text: &str) -> Vec<Program> {
    let stem = Path::new(page).file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    let is_main = |line: &str| line.trim_start_matches("async ").starts_with("fn main(");
    let rust = blocks(text).into_iter().filter(|block| block.language == "rust");
    let all = rust.map(|block| Program {
        name: format!("{stem}_{}", block.line),
        text: text_of(&block, page != README),
    });
    all.filter(|program| program.text.lines().any(is_main)).collect()
}

/// The lines of the manifests that a page shows.
fn dependencies(text: &str) -> Vec<&str> {
    let shown = blocks(text).into_iter().filter(|block| block.language == "toml");
    shown.flat_map(|block| block.lines).collect()
}

/// The name of the dependency in a line of a manifest.
fn dependency(line: &str) -> Option<&str> {
    line.split_once(" = ").map(|(name, _)| name).filter(|name| !name.starts_with('#'))
}

/// The dependencies of all chapters, and those of one. A reader who adds a line that the chapter
/// shows replaces the line for the same crate.
fn with_own<'t>(all: &[&'t str], own: &[&'t str]) -> Vec<&'t str> {
    let is_replaced = |line: &str| {
        let name = dependency(line);
        name.is_some() && own.iter().any(|own| dependency(own) == name)
    };
    all.iter().filter(|line| !is_replaced(line)).chain(own).copied().collect()
}

/// The manifest of a package with these dependencies and this checkout.
fn manifest(dependencies: &[&str], checkout: &Path) -> String {
    let checkout = format!("\"{}", checkout.display());
    let mut text = PACKAGE.to_owned();
    for line in dependencies {
        let line = line.replace(CHECKOUT, &checkout);
        // cargo then reads the manifest of the dependency, but does not build it.
        let is_optional = dependency(&line) == Some(NOT_BUILT);
        text += &if is_optional { line.replace(" }", ", optional = true }") } else { line };
        text.push('\n');
    }
    text
}

/// The programs by the manifest that their page shows. Programs that do not name the crate of the
/// book are there again without it.
fn packages(root: &Path) -> Result<BTreeMap<String, Vec<Program>>> {
    let mut packages: BTreeMap<String, Vec<Program>> = BTreeMap::new();
    let introduction = read(root, INTRODUCTION)?;
    let of_all = dependencies(&introduction);
    for page in pages(root)? {
        let text = read(root, &page)?;
        let own = dependencies(&text);
        let shown =
            if page == README || page == INTRODUCTION { own } else { with_own(&of_all, &own) };
        let is_other = |line: &&&str| dependency(line) != Some(BOOK);
        let without: Vec<&str> = shown.iter().filter(is_other).copied().collect();
        let others = programs(&page, &text).into_iter().filter(|one| !one.names_the_book());
        packages.entry(manifest(&without, root)).or_default().extend(others);
        packages.entry(manifest(&shown, root)).or_default().extend(programs(&page, &text));
    }
    // In a page without the crate of the book, both are one package.
    for programs in packages.values_mut() {
        programs.sort_by(|a, b| a.name.cmp(&b.name));
        programs.dedup();
    }
    packages.retain(|_, programs| !programs.is_empty());
    Ok(packages)
}

fn read(root: &Path, page: &str) -> Result<String> {
    fs::read_to_string(root.join(page)).with_context(|| page.to_owned())
}

fn pages(root: &Path) -> Result<Vec<String>> {
    let mut pages = vec![README.to_owned()];
    for file in fs::read_dir(root.join(CHAPTERS)).context(CHAPTERS)? {
        let name = file?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            pages.push(format!("{CHAPTERS}/{name}"));
        }
    }
    Ok(pages)
}

/// What a run does with the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Do {
    Check,
    Run,
}

/// Checks or runs the programs of all pages, and the planted mistakes.
pub(crate) fn run(root: &Path, what: Do) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let lab = Lab { root, directory: scratch.path(), target: root.join(target).join("pages") };
    let packages = packages(root)?;
    let mut failed = Vec::new();
    for (manifest, programs) in &packages {
        println!("\n{} programs with\n{manifest}", programs.len());
        let outcome = lab.check(manifest, programs)?;
        if !outcome.is_clean() {
            failed.push(outcome.output);
        } else if what == Do::Run {
            failed.extend(lab.run(programs)?);
        }
    }
    ensure!(failed.is_empty(), "programs fail when they are copied:\n{}", failed.join("\n"));
    lab.controls(&packages)?;
    let names = packages.values().flatten().map(|program| &program.name);
    let count = names.collect::<std::collections::BTreeSet<_>>().len();
    println!("{count} programs in {} packages; both planted mistakes were found", packages.len());
    Ok(())
}

/// What cargo reported.
struct Outcome {
    succeeded: bool,
    output: String,
}

impl Outcome {
    /// Whether the programs compile without a warning.
    fn is_clean(&self) -> bool {
        self.succeeded && !self.output.contains("warning: `copied`")
    }

    /// Whether a program has an error of the compiler, and not cargo one of its own.
    fn has_error_in(&self, program: &Program) -> bool {
        let file = format!("--> src/bin/{}.rs", program.name);
        !self.succeeded && self.output.contains("error[E") && self.output.contains(&file)
    }
}

/// A directory for one package after the other.
struct Lab<'r> {
    root: &'r Path,
    directory: &'r Path,
    target: PathBuf,
}

impl Lab<'_> {
    /// Writes the package, in place of the last one.
    fn write(&self, manifest: &str, programs: &[Program]) -> Result<()> {
        let source = self.directory.join("src");
        if source.exists() {
            fs::remove_dir_all(&source)?;
        }
        fs::create_dir_all(source.join("bin"))?;
        fs::write(self.directory.join("Cargo.toml"), manifest)?;
        // The versions of the workspace, so that no registry is needed.
        fs::copy(self.root.join("Cargo.lock"), self.directory.join("Cargo.lock"))?;
        for Program { name, text } in programs {
            fs::write(source.join("bin").join(format!("{name}.rs")), text)?;
        }
        Ok(())
    }

    fn cargo(&self, arguments: &[&str]) -> Result<Outcome> {
        let mut cargo = Command::new("cargo");
        cargo.args(arguments).args(["--offline", "--quiet", "--keep-going", "--bins"]);
        cargo.current_dir(self.directory).env("CARGO_TARGET_DIR", &self.target);
        let output = cargo.stdin(Stdio::null()).output().context("cargo does not start")?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(Outcome { succeeded: output.status.success(), output: text })
    }

    fn check(&self, manifest: &str, programs: &[Program]) -> Result<Outcome> {
        self.write(manifest, programs)?;
        self.cargo(&["check"])
    }

    /// Builds and runs the programs of the package. Returns those that fail.
    fn run(&self, programs: &[Program]) -> Result<Vec<String>> {
        let built = self.cargo(&["build"])?;
        if !built.succeeded {
            return Ok(vec![built.output]);
        }
        let mut failed = Vec::new();
        for Program { name, .. } in programs {
            let program = self.target.join("debug").join(name);
            let output = Command::new(program).current_dir(self.directory).output()?;
            if !output.status.success() {
                failed.push(format!("{name}: {}", String::from_utf8_lossy(&output.stderr)));
            }
        }
        Ok(failed)
    }

    /// Plants mistakes in the first program of the book, which must fail to compile.
    fn controls(&self, packages: &BTreeMap<String, Vec<Program>>) -> Result<()> {
        let page = read(self.root, INTRODUCTION)?;
        let shown = manifest(&dependencies(&page), self.root);
        ensure!(packages.contains_key(&shown), "the manifest of the book is not checked");
        let import = "use keyloom_patterns::";
        let hidden = programs(INTRODUCTION, &page.replace(import, &format!("# {import}")));
        self.must_fail("a hidden import", &shown, &hidden)?;
        let is_left = |line: &&&str| !matches!(dependency(line), Some("keyloom-patterns" | BOOK));
        let fewer: Vec<&str> = dependencies(&page).iter().filter(is_left).copied().collect();
        let intact = programs(INTRODUCTION, &page);
        self.must_fail("a missing dependency", &manifest(&fewer, self.root), &intact)
    }

    fn must_fail(&self, mistake: &str, manifest: &str, programs: &[Program]) -> Result<()> {
        let outcome = self.check(manifest, programs)?;
        match programs.first() {
            Some(program) if outcome.has_error_in(program) => Ok(()),
            _ => bail!("{mistake} was not found:\n{}", outcome.output),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn a_copy_from_the_book_has_no_hidden_lines() {
        let copy = |page| programs(page, PAGE).pop().unwrap().text;
        assert_eq!(copy("book/src/a.md"), "#[derive(A)]\nfn main() {\n    # x\n}\n");
        assert_eq!(copy(README), PAGE[PAGE.find("#[").unwrap()..PAGE.len() - 4]);
    }

    const PAGE: &str =
        "A\n\n```rust\n#[derive(A)]\n# use b::C;\n#\nfn main() {\n    ## x\n    # y\n}\n```\n";

    #[test]
    fn programs_have_a_shown_main_and_the_line_of_their_block() {
        let page = "```rust\nlet a = 1;\n```\n\n```rust\nasync fn main() {}\n```\n\
                    ```rust\n# fn main() {\nx\n# }\n```\n```text\nfn main() {}\n```\n";
        let found = programs("book/src/a.md", page);
        assert_eq!(found, [Program { name: "a_6".into(), text: "async fn main() {}\n".into() }]);
    }

    #[test]
    fn own_dependencies_replace_those_of_all_chapters() {
        let all = ["[dependencies]", "a = \"1\"", "# b", "b = \"1\""];
        let own = ["b = \"2\"", "c = \"1\""];
        let both = ["[dependencies]", "a = \"1\"", "# b", "b = \"2\"", "c = \"1\""];
        assert_eq!(with_own(&all, &own), both);
        assert_eq!(with_own(&all, &[]), all);
    }

    #[test]
    fn manifests_differ_from_the_shown_ones_in_the_path_alone() {
        let text =
            manifest(&["[dependencies]", "a = { path = \"../keyloom/a\" }"], Path::new("/k"));
        assert_eq!(text, format!("{PACKAGE}[dependencies]\na = {{ path = \"/k/a\" }}\n"));
        let line = "keyloom-foundationdb = { path = \"../keyloom/f\" }";
        assert!(manifest(&[line], Path::new("/k")).ends_with("\"/k/f\", optional = true }\n"));
    }

    #[test]
    fn every_program_is_checked_with_the_manifest_of_its_page() {
        let root = crate::root().unwrap();
        let packages = packages(&root).unwrap();
        let count = |page: &str| programs(page, &read(&root, page).unwrap()).len();
        let expected: usize = pages(&root).unwrap().iter().map(|page| count(page)).sum();
        let names: std::collections::BTreeSet<_> =
            packages.values().flatten().map(|program| &program.name).collect();
        assert!(expected > 0);
        assert_eq!(names.len(), expected);
        let shown = manifest(&dependencies(&read(&root, README).unwrap()), &root);
        assert_eq!(packages[&shown].iter().filter(|one| one.name.starts_with("readme")).count(), 1);
    }
}
