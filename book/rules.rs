//! The rules of the book, and negative controls for their checker.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Languages of blocks that are not meant to run.
const NOT_RUST: [&str; 4] = ["text", "sh", "python", "toml"];

/// A fenced block: its first line, the info string after the fence, and its lines.
struct Block<'t> {
    line: usize,
    info: &'t str,
    lines: Vec<&'t str>,
}

/// The fence that opens a line, without the quotation marks and bullets before it.
fn fence(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start_matches([' ', '\t', '>', '-', '*']);
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let info = line.trim_start_matches(mark);
    let width = line.len() - info.len();
    (width >= 3).then(|| (&line[..width], info.trim()))
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, Block<'_>)> = None;
    for (number, line) in text.lines().enumerate() {
        match (open.take(), fence(line)) {
            (None, Some((mark, info))) => {
                open = Some((mark, Block { line: number + 1, info, lines: Vec::new() }));
            }
            (Some((mark, block)), Some((end, ""))) if end.starts_with(mark) => blocks.push(block),
            (Some((mark, mut block)), _) => {
                block.lines.push(line);
                open = Some((mark, block));
            }
            (None, None) => {}
        }
    }
    blocks.extend(open.map(|(_, block)| Block { info: "never closed", ..block }));
    blocks
}

/// Why a Rust block does not run, or runs without a check.
///
/// This is a list of accepted info strings, so that an unforeseen one is refused.
fn broken_rule(block: &Block<'_>) -> Option<&'static str> {
    let has = |needle: &str| block.lines.iter().any(|line| line.contains(needle));
    let begins = |needle: &str| block.lines.iter().any(|line| line.trim().starts_with(needle));
    match block.info {
        "rust" if has("cfg(") || has("if false") => Some("a part of it is left out"),
        "rust" => None,
        other if !NOT_RUST.contains(&other) => Some("it is neither `rust` nor a plain language"),
        _ if begins("use ") || begins("let ") || begins("fn ") => Some("it is Rust under a cover"),
        _ => None,
    }
}

fn broken_rules(text: &str) -> Vec<String> {
    let describe = |block: &Block<'_>| {
        broken_rule(block).map(|why| format!("line {}: {why}: {:?}", block.line, block.info))
    };
    blocks(text).iter().filter_map(describe).collect()
}

/// The chapters that a summary lists, in the form `[title](file.md)`.
fn listed(summary: &str) -> BTreeSet<String> {
    let targets = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.map(|target| target.trim_start_matches("./").to_owned()).collect()
}

/// The chapters that a crate includes.
fn included(library: &str) -> BTreeSet<String> {
    let paths = library.split("include_str!(\"").skip(1).filter_map(|rest| rest.split('"').next());
    let names = paths.filter_map(|path| Path::new(path).file_name()?.to_str());
    names.map(str::to_owned).collect()
}

fn read(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

fn chapter_files() -> BTreeSet<String> {
    let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != "SUMMARY.md" && name != PICTURES).collect()
}

/// The folder of the pictures in the chapters.
const PICTURES: &str = "pictures";

fn pictures() -> BTreeSet<String> {
    let files =
        fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(PICTURES)).unwrap();
    files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

/// The pictures in a chapter, in the form `![description](pictures/file.svg)`.
fn shown(text: &str) -> BTreeSet<String> {
    let images = text.split("![").skip(1).filter_map(|rest| rest.split_once("](pictures/"));
    let described = images.filter(|(described, _)| !described.is_empty());
    described.filter_map(|(_, rest)| rest.split(')').next()).map(str::to_owned).collect()
}

#[test]
fn every_shown_picture_exists_and_every_picture_is_shown() {
    let shown: BTreeSet<String> =
        chapter_files().iter().flat_map(|name| shown(&read(&format!("src/{name}")))).collect();
    assert!(!shown.is_empty());
    assert_eq!(shown, pictures());
}

#[test]
fn every_chapter_is_a_file_and_listed_and_run() {
    let files = chapter_files();
    assert!(!files.is_empty());
    // It would become `index.html`, and take the place of the introduction.
    assert!(!files.contains("index.md") && !files.contains("README.md"), "the first page");
    assert_eq!(listed(&read("src/SUMMARY.md")), files, "SUMMARY.md lists what is in book/src");
    let modules = include_str!(concat!(env!("OUT_DIR"), "/chapters.rs"));
    assert_eq!(included(modules), files, "build.rs includes what is in book/src");
}

/// What an introduction does not link to.
fn not_introduced(introduction: &str, chapters: &BTreeSet<String>) -> BTreeSet<String> {
    let itself = "introduction.md".to_owned();
    chapters - &(&listed(introduction) | &BTreeSet::from([itself]))
}

#[test]
fn the_introduction_lists_every_chapter() {
    let introduction = read("src/introduction.md");
    assert_eq!(not_introduced(&introduction, &chapter_files()), BTreeSet::new());
    let chapters = ["keys.md", "introduction.md", "queue.md"].map(str::to_owned);
    let missing = not_introduced("| [Keys](keys.md) | how? |", &BTreeSet::from(chapters));
    assert_eq!(missing, BTreeSet::from(["queue.md".to_owned()]));
}

/// The features of a package, by its manifest.
fn features(manifest: &str) -> Vec<&str> {
    let lines = manifest.lines().skip_while(|line| *line != "[features]").skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| line.split_once(" = ")).map(|(name, _)| name).collect()
}

#[test]
fn the_readme_of_the_patterns_names_every_feature() {
    let (readme, manifest) = (read("../patterns/README.md"), read("../patterns/Cargo.toml"));
    let unnamed = |readme: &str| -> Vec<&str> {
        let features = features(&manifest).into_iter().filter(|name| *name != "default");
        features.filter(|name| !readme.contains(&format!("`{name}`"))).collect()
    };
    assert_eq!(unnamed(&readme), [""; 0]);
    assert_eq!(unnamed(&readme.replace("`locking`", "")), ["locking"]);
}

/// The part of the summary whose chapters are for looking things up.
const APPENDIX: &str = "\n# Appendix\n";

/// The number of words that a reader reads in twelve minutes, code included.
const CHAPTER_WORDS: usize = 2_400;

/// The words of a text, as `wc -w` counts them.
fn words(text: &str) -> usize {
    text.split_ascii_whitespace().count()
}

/// The chapters before the appendix that are longer than twelve minutes, with their words.
fn long_chapters(summary: &str, read: impl Fn(&str) -> String) -> Vec<(String, usize)> {
    let (chapters, _) = summary.split_once(APPENDIX).unwrap();
    let counted = listed(chapters).into_iter().map(|name| {
        let words = words(&read(&name));
        (name, words)
    });
    counted.filter(|(_, words)| *words > CHAPTER_WORDS).collect()
}

#[test]
fn no_chapter_takes_more_than_twelve_minutes() {
    let long = long_chapters(&read("src/SUMMARY.md"), |name| read(&format!("src/{name}")));
    assert_eq!(long, [], "divide these chapters by their questions");
}

#[test]
fn the_checker_finds_long_chapters_before_the_appendix() {
    let summary = "# Start\n\n- [A](a.md)\n  - [B](b.md)\n\n# Appendix\n\n- [C](c.md)\n";
    let found = |a: usize, b: usize| {
        let long = |name: &str| match name {
            "a.md" => "a word\n".repeat(a),
            "b.md" => "one ".repeat(b),
            _ => "one ".repeat(2 * CHAPTER_WORDS),
        };
        long_chapters(summary, long).into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(found(CHAPTER_WORDS / 2, CHAPTER_WORDS), [""; 0]);
    assert_eq!(found(CHAPTER_WORDS / 2 + 1, CHAPTER_WORDS), ["a.md"]);
    assert_eq!(found(1, CHAPTER_WORDS + 1), ["b.md"]);
}

/// Whether a chapter has an exercise whose solution has a Rust block, which runs like all others.
fn has_exercise(chapter: &str) -> bool {
    chapter.split("\n## ").filter(|section| section.starts_with("Exercise")).any(|section| {
        let solution = section.split_once("<summary>Solution</summary>");
        solution.is_some_and(|(_, solution)| blocks(solution).iter().any(|b| b.info == "rust"))
    })
}

#[test]
fn every_chapter_before_the_appendix_has_an_exercise() {
    let summary = read("src/SUMMARY.md");
    let (chapters, _) = summary.split_once(APPENDIX).unwrap();
    let chapters = listed(chapters).into_iter();
    let without: Vec<String> =
        chapters.filter(|name| !has_exercise(&read(&format!("src/{name}")))).collect();
    assert_eq!(without, [""; 0]);
    let solved = "# A\n\n## Exercise\n\n<summary>Solution</summary>\n\n```rust\n```\n";
    assert!(has_exercise(solved));
    assert!(!has_exercise(&solved.replace("## Exercise", "## Try it")));
    assert!(!has_exercise(&solved.replace("```rust", "```text")));
}

/// The chapters that a text links to from the beginning of a line, in order.
fn in_order<'t>(text: &'t str, begin: &str) -> Vec<&'t str> {
    let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix(begin));
    lines.filter_map(|line| line.split_once("](")?.1.split(')').next()).collect()
}

#[test]
fn the_introduction_has_the_order_of_the_summary() {
    let (summary, introduction) = (read("src/SUMMARY.md"), read("src/introduction.md"));
    let listed = in_order(&summary, "- [");
    assert!(!listed.is_empty());
    assert_eq!(in_order(&introduction, "| ["), listed);
    assert_eq!(in_order("| [A](a.md) | why? |\n| b | c |\n| [B](b.md) |", "| ["), ["a.md", "b.md"]);
}

#[test]
fn every_rust_block_of_the_book_and_the_readme_runs() {
    let mut rust = 0;
    let chapters = chapter_files().into_iter().map(|name| format!("src/{name}"));
    for file in chapters.chain(["../README.md".to_owned()]) {
        let text = read(&file);
        assert_eq!(broken_rules(&text), [""; 0], "{file}");
        rust += blocks(&text).iter().filter(|block| block.info == "rust").count();
    }
    assert!(rust > 0);
}

/// The number of characters that a block of the book's pages shows in a line.
const PAGE_CHARS: usize = 80;

/// Whether rustdoc hides a line of a Rust block.
fn is_hidden(line: &str) -> bool {
    let line = line.trim_start();
    line == "#" || line.starts_with("# ")
}

/// The lines of blocks that are wider than the page. rustdoc's hidden lines are not shown.
fn cut_lines(text: &str) -> Vec<String> {
    let mut cut = Vec::new();
    for block in blocks(text) {
        let is_shown = |line: &str| block.info != "rust" || !is_hidden(line);
        let is_cut = |line: &&&str| line.chars().count() > PAGE_CHARS && is_shown(line);
        cut.extend(block.lines.iter().filter(is_cut).map(|line| (*line).to_owned()));
    }
    cut
}

#[test]
fn no_line_of_a_block_is_wider_than_the_page() {
    let chapters = chapter_files().into_iter().map(|name| format!("src/{name}"));
    for file in chapters.chain(["../README.md".to_owned()]) {
        assert_eq!(cut_lines(&read(&file)), [""; 0], "{file}");
    }
}

#[test]
fn the_checker_measures_what_is_shown() {
    let (fits, cut) = ("é".repeat(PAGE_CHARS), "é".repeat(PAGE_CHARS + 1));
    for info in ["rust", "text", "sh"] {
        let block = |line: &str| cut_lines(&format!("{cut}\n```{info}\n{line}\n```\n"));
        assert_eq!(block(&fits), [""; 0]);
        assert_eq!(block(&cut), [&*cut]);
        assert_eq!(block(&format!("# {cut}")).len(), usize::from(info != "rust"));
        assert_eq!(block(&format!("#[{cut}]")).len(), 1);
    }
}

/// Crates that programs name without a `use`.
const WITHOUT_USE: [&str; 5] = ["roaring", "serde_json", "tempfile", "thiserror", "tokio"];

/// What keeps a program from running as it is shown, in a package with the dependencies that the
/// text shows.
fn cannot_be_copied(block: &Block<'_>, dependencies: &str) -> Option<String> {
    if let Some(hidden) = block.lines.iter().find(|line| is_hidden(line)) {
        return Some(format!("{hidden:?} is hidden"));
    }
    let is_main = |line: &&str| line.trim_start_matches("async ").starts_with("fn main(");
    if !block.lines.iter().any(is_main) {
        return Some("it has no `main`".into());
    }
    let paths = block.lines.iter().filter_map(|line| line.trim_start().strip_prefix("use "));
    let used = paths.map(|path| path.split("::").next().unwrap_or_default());
    let is_named =
        |name: &&&str| block.lines.iter().any(|line| line.contains(&format!("{name}::")));
    let mut crates = used.chain(WITHOUT_USE.iter().filter(is_named).copied());
    let is_shown = |name: &str| {
        let names = [name.to_owned(), name.replace('_', "-")];
        let has = |name: &String| dependencies.contains(&format!("\n{name} = "));
        name == "std" || names.iter().any(has)
    };
    let missing = crates.find(|name| !is_shown(name))?;
    Some(format!("{missing:?} is not among the dependencies"))
}

fn dependencies(text: &str) -> String {
    let toml = blocks(text).into_iter().find(|block| block.info == "toml").unwrap();
    toml.lines.join("\n")
}

#[test]
fn what_is_shown_first_runs_when_it_is_copied() {
    let readme = read("../README.md");
    for block in blocks(&readme).iter().filter(|block| block.info == "rust") {
        assert_eq!(cannot_be_copied(block, &dependencies(&readme)), None, "{}", block.line);
    }
    let shown = dependencies(&read("src/introduction.md"));
    for name in chapter_files() {
        let text = read(&format!("src/{name}"));
        let blocks = blocks(&text);
        let Some(first) = blocks.iter().find(|block| block.info == "rust") else { continue };
        // A chapter may show what it needs besides.
        let own = blocks.iter().filter(|block| block.info == "toml").map(|b| b.lines.join("\n"));
        let shown = own.fold(shown.clone(), |all, own| format!("{all}\n{own}"));
        assert_eq!(cannot_be_copied(first, &shown), None, "{name}");
    }
}

/// Whether a page with a complete program links to the dependencies of all programs.
fn leads_to_dependencies(page: &str) -> bool {
    let is_main = |line: &&str| line.trim_start_matches("async ").starts_with("fn main(");
    let is_program = |block: &Block<'_>| block.info == "rust" && block.lines.iter().any(is_main);
    !blocks(page).iter().any(is_program) || page.contains("](introduction.md#dependencies)")
}

#[test]
fn every_program_is_one_link_away_from_its_dependencies() {
    assert!(read("src/introduction.md").contains("\n## Dependencies\n"));
    for name in chapter_files().into_iter().filter(|name| name != "introduction.md") {
        assert!(leads_to_dependencies(&read(&format!("src/{name}"))), "{name}");
    }
    assert!(!leads_to_dependencies("```rust\nasync fn main() {}\n```\n"));
}

#[test]
fn the_checker_finds_what_cannot_be_copied() {
    let cannot = |lines: &[&'static str]| {
        let block = Block { line: 1, info: "rust", lines: lines.to_vec() };
        cannot_be_copied(&block, "[dependencies]\nkeyloom = 1\nkeyloom-book = 1").is_some()
    };
    assert!(!cannot(&["use keyloom::Store;", "use keyloom_book::geo;", "fn main() {}"]));
    assert!(cannot(&["use keyloom_patterns::Schema;", "fn main() {}"]));
    assert!(cannot(&["# use keyloom::Store;", "fn main() {}"]));
    assert!(cannot(&["let a = 1;"]));
    assert!(cannot(&["fn main() {", "    tempfile::tempdir().unwrap();", "}"]));
    assert!(cannot(&["# fn main() {", "let a = 1;", "# }"]));
}

#[test]
fn every_rust_block_of_a_chapter_asserts_something() {
    for name in chapter_files() {
        let text = read(&format!("src/{name}"));
        for block in blocks(&text).iter().filter(|block| block.info == "rust") {
            let asserts = block.lines.iter().any(|line| line.contains("assert"));
            assert!(asserts, "{name}, line {}: nothing is asserted", block.line);
        }
    }
}

#[test]
fn the_checker_catches_every_way_around_a_run() {
    let ways = [
        "rust,ignore",
        "rust,no_run",
        "rust,compile_fail",
        "rust,should_panic",
        "ignore",
        "no_run",
        "compile_fail",
        "should_panic",
        "rust ignore",
        "rust,ignore-x86_64",
        "rust,edition2015",
        "{.rust .ignore}",
        "",
        "Rust",
        "rs",
        "console",
    ];
    for info in ways {
        let text = format!("A text.\n\n```{info}\nassert!(true);\n```\n");
        assert_eq!(broken_rules(&text).len(), 1, "{info:?} passed");
    }
    let covered = [
        "```text\nuse keyloom::Memory;\n```\n",
        "```rust\n# #[cfg(any())]\n# {\nassert!(false);\n# }\n```\n",
        "```rust\nif false { assert!(false) }\n```\n",
        "> ```rust,ignore\n> assert!(true);\n> ```\n",
        "- ~~~~ignore\n  assert!(true);\n  ~~~~\n",
        "```rust\nassert!(true);\n",
    ];
    for text in covered {
        assert_eq!(broken_rules(text).len(), 1, "{text:?} passed");
    }
}

#[test]
fn the_checker_takes_what_is_in_order() {
    let text = "```rust\n# let hidden = 1;\nassert!(true);\n```\n\n````text\n```\n02 61 00\n````\n";
    assert_eq!(broken_rules(text), [""; 0]);
    assert_eq!(blocks(text).len(), 2);
}

#[test]
fn the_lists_of_chapters_are_read_as_written() {
    let summary = "# Summary\n\n[A](a.md)\n\n- [B](./b.md)\n";
    assert_eq!(listed(summary), BTreeSet::from(["a.md".to_owned(), "b.md".to_owned()]));
    let library = "#[doc = include_str!(\"src/a.md\")]\npub mod a {}\n";
    assert_eq!(included(library), BTreeSet::from(["a.md".to_owned()]));
}
