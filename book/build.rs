//! Generates a module for each chapter in `SUMMARY.md`; its documentation is the chapter.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let chapters = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("src");
    let summary = chapters.join("SUMMARY.md");
    println!("cargo::rerun-if-changed={}", summary.display());
    let mut modules = String::new();
    for link in fs::read_to_string(&summary)?.split("](").skip(1) {
        let Some((name, _)) = link.split_once(".md)") else { continue };
        let chapter = chapters.join(format!("{name}.md"));
        writeln!(modules, "#[doc = include_str!({chapter:?})]\npub mod {name} {{}}")?;
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("chapters.rs"), modules)?;
    Ok(())
}
