//! Draws pictures of the book: the curve of the chapter on dimensionality reduction, from the codes
//! of the library, with the reads of queries over real cities. Other pictures show the supersteps
//! of a vertex program, the bytes of a posting block, the blocks that a search skips, and the
//! timeline of a fenced write.
//!
//! ```text
//! cargo run -p keyloom-examples --bin draw_pictures      writes book/src/pictures
//! ```

mod alice;
mod antimeridian;
mod block;
mod card;
mod cities;
mod cover;
mod curves;
mod fencing;
mod map;
mod pole;
mod postings;
mod skipping;
mod supersteps;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

type Drawn<T> = Result<T, Box<dyn Error>>;

/// The maximum number of ranges of the queries; each gets a picture.
const BUDGETS: [usize; 3] = [4, 16, 64];

fn main() -> ExitCode {
    match write() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("draw_pictures: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write() -> Drawn<()> {
    let directory = directory();
    std::fs::create_dir_all(&directory)?;
    for (name, picture) in pictures()? {
        let file = directory.join(name);
        println!("{} ({} bytes)", file.display(), picture.len());
        std::fs::write(file, picture)?;
    }
    Ok(())
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../book/src/pictures")
}

/// The names and the contents of all pictures.
fn pictures() -> Drawn<Vec<(String, String)>> {
    let cities = cities::read()?;
    let paragraphs = alice::Paragraphs::read()?;
    let mut pictures = vec![
        ("curves.svg".to_owned(), curves::picture()),
        ("antimeridian.svg".to_owned(), antimeridian::picture(&cities)?),
        ("pole.svg".to_owned(), pole::picture(&cities)?),
        ("posting_block.svg".to_owned(), postings::picture(&paragraphs)?),
        ("skipping.svg".to_owned(), skipping::picture(&paragraphs)?),
        ("fencing.svg".to_owned(), fencing::picture()?),
        ("supersteps.svg".to_owned(), supersteps::picture()?),
    ];
    for ranges in BUDGETS {
        pictures.push((format!("cover_{ranges}.svg"), cover::picture(&cities, ranges)?));
    }
    Ok(pictures)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeSet;

    use super::{directory, pictures};

    /// The size limit of a picture, because it is loaded with a page.
    const MOST_BYTES: usize = 60_000;

    /// Other pictures in the same directory, which are not drawn here.
    const OTHERS: [&str; 2] = ["four_trees.svg", "two_indexes.svg"];

    #[test]
    fn the_pictures_of_the_book_are_those_that_are_drawn() {
        let mut drawn = BTreeSet::new();
        for (name, picture) in pictures().unwrap() {
            let file = directory().join(&name);
            let kept = std::fs::read_to_string(&file).unwrap();
            assert!(
                kept == picture,
                "{name}: run `cargo run -p keyloom-examples --bin draw_pictures`"
            );
            assert!(picture.len() < MOST_BYTES, "{name} has {} bytes", picture.len());
            assert!(picture.contains("<title>") && picture.contains("<desc>"), "{name}");
            drawn.insert(name);
        }
        let files = std::fs::read_dir(directory()).unwrap();
        let kept = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        // `cargo xtask plots` draws these, and its tests compare them.
        let kept = kept.filter(|name| !name.starts_with("measured_"));
        drawn.extend(OTHERS.map(String::from));
        assert_eq!(kept.collect::<BTreeSet<_>>(), drawn);
    }
}
