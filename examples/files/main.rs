//! Stores a directory tree with its contents, and searches it.
//!
//! ```text
//! cargo build --release -p keyloom-examples --bin files
//! target/release/files lmdb:/tmp/files add book/src /book
//! target/release/files lmdb:/tmp/files search 'white rabbit' /book
//! target/release/files lmdb:/tmp/files mv /book /library
//! target/release/files lmdb:/tmp/files ls /library
//! ```
//!
//! Each file and its words are stored in one transaction. A directory is also renamed in one
//! transaction.

use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use keyloom::{AnyStore, Store};
use keyloom_documents::files::{FileEntry, Files, FilesError, Kind};
use keyloom_patterns::Schema;
use keyloom_redb::Redb;
use keyloom_text::QueryParser;

const HELP: &str = "\
Stores a directory tree with its contents in a store, and searches it.

Usage: files STORE COMMAND

STORE is an address such as lmdb:DIRECTORY or redb:FILE. Paths in the store begin with a slash.

  add DIRECTORY PATH     stores the files of a directory below a path
  ls PATH                lists a directory
  cat PATH               writes the contents of a file
  find NAME              lists the entries whose names begin with NAME
  search QUERY [PATH]    finds files by their words, in all or below a path
  mv PATH NEW_PATH       renames a file or a directory, in one transaction
  rm PATH                removes a file, or a directory with all that is in it
";

type Done<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the pipe has closed it.
        Err(error) if is_broken_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("files: {error}");
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn run() -> Done {
    let mut arguments = Vec::new();
    for argument in std::env::args_os().skip(1) {
        arguments.push(argument.into_string().map_err(|_| "an argument is not UTF-8")?);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (address, command) = match arguments.split_first() {
        None | Some((&("-h" | "--help"), _)) => return Ok(io::stdout().write_all(HELP.as_bytes())?),
        Some(all) => all,
    };
    let store = AnyStore::open_with(address, &[("redb", Redb::open_address)])?;
    let files = Files::open(&Schema::open(&store, "files")?)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    match command {
        ["add", directory, path] => add(&store, &files, Path::new(directory), path, &mut out)?,
        ["ls", path] => list(&store, &files, path, &mut out)?,
        ["cat", path] => out.write_all(&files.read(&store.snapshot()?, path)?)?,
        ["find", name] => find(&store, &files, name, &mut out)?,
        ["search", query] => search(&store, &files, query, "/", &mut out)?,
        ["search", query, path] => search(&store, &files, query, path, &mut out)?,
        ["mv", from, to] => store.transact(|txn| files.rename(txn, from, to))?,
        ["rm", path] => drop(files.remove_all(&store, path)?),
        _ => return Err(format!("unknown command {command:?}; try --help").into()),
    }
    Ok(out.flush()?)
}

/// Stores the files of a directory, each in its own transaction.
fn add(
    store: &AnyStore,
    files: &Files,
    directory: &Path,
    path: &str,
    out: &mut impl Write,
) -> Done {
    let (mut count, mut bytes) = (0_u64, 0_u64);
    let mut rest = vec![(directory.to_owned(), path.trim_end_matches('/').to_owned())];
    while let Some((from, to)) = rest.pop() {
        if from.is_dir() {
            create(store, files, &to)?;
            for entry in fs::read_dir(&from)? {
                let entry = entry?;
                let name = entry.file_name();
                let name = name.to_str().ok_or_else(|| {
                    format!("the name of {} is not UTF-8", entry.path().display())
                })?;
                // A symbolic link could lead out of the directory, or form a cycle.
                if !entry.file_type()?.is_symlink() {
                    rest.push((entry.path(), format!("{to}/{name}")));
                }
            }
        } else {
            let contents = fs::read(&from)?;
            store.transact(|txn| files.write(txn, &to, &contents))?;
            (count, bytes) = (count + 1, bytes + contents.len() as u64);
        }
    }
    Ok(writeln!(out, "{count} files, {bytes} bytes")?)
}

/// Creates a directory if it does not exist. The root always exists.
fn create(store: &AnyStore, files: &Files, path: &str) -> Done {
    if path.is_empty() {
        return Ok(());
    }
    match store.transact(|txn| files.create_directory(txn, path)) {
        Err(error) if matches!(error.downcast_ref(), Some(FilesError::Exists { .. })) => Ok(()),
        created => Ok(created.map(drop)?),
    }
}

fn line(entry: &FileEntry, name: &str) -> String {
    match entry.kind {
        Kind::File { bytes, .. } => format!("{bytes:>10}  {name}"),
        _ => format!("{:>10}  {name}/", ""),
    }
}

fn list(store: &AnyStore, files: &Files, path: &str, out: &mut impl Write) -> Done {
    let (snapshot, mut after) = (store.snapshot()?, None);
    loop {
        let page = files.list(&snapshot, path, 1_000, after.as_ref())?;
        for (_, entry) in &page.items {
            writeln!(out, "{}", line(entry, &entry.name))?;
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

fn find(store: &AnyStore, files: &Files, name: &str, out: &mut impl Write) -> Done {
    for (path, _, entry) in files.find_named(&store.snapshot()?, name, usize::MAX)? {
        writeln!(out, "{}", line(&entry, &path))?;
    }
    Ok(())
}

/// Shows the best files, with the positions of the words.
fn search(store: &AnyStore, files: &Files, query: &str, path: &str, out: &mut impl Write) -> Done {
    let query = QueryParser::new(["contents"]).parse(query)?;
    let snapshot = store.snapshot()?;
    let highlighter = files.highlighter(&snapshot, &query)?;
    let highlighter = highlighter.fragments(1).tags("[", "]").escape_html(false);
    for file in files.search(query).within(path).page(&snapshot)?.items {
        writeln!(out, "{:.3}  {}", file.score, file.path)?;
        let Some(best) = file.pieces.first() else { continue };
        let text = files.piece(&snapshot, file.id, *best)?.unwrap_or_default();
        for fragment in highlighter.highlight(&text) {
            let words: Vec<&str> = fragment.text.split_whitespace().collect();
            writeln!(out, "       {}", words.join(" "))?;
        }
    }
    Ok(())
}
