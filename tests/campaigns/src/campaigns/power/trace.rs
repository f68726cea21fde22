//! The operations of a program on its store, parsed from the system calls in a strace log.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use super::job::Job;

/// The traced calls. Some are replayed; the others would change the file in a way that the replay
/// does not support, and are traced to be noticed.
pub const CALLS: &str = "openat,mkdir,mkdirat,write,writev,pwrite64,pwritev,pwritev2,lseek,fdatasync,\
    fsync,mmap,open,creat,ftruncate,truncate,fallocate,msync,sync_file_range,copy_file_range,sendfile,\
    splice,dup,dup2,dup3,rename,renameat,renameat2,link,linkat,unlink,unlinkat,syncfs,sync";

/// One event of the trace, in order.
#[derive(Clone, Debug)]
pub enum Event {
    /// The program has opened its store.
    Opened,
    /// The program begins the transaction with this `number`. The store contains `committed`
    /// transactions before its commit.
    Begun { number: u64, committed: u64 },
    /// This number of transactions was reported to the program as committed.
    Acknowledged(u64),
    /// This number of transactions was reported to the program as durable, whatever their
    /// `Durability`.
    Flushed(u64),
    /// Bytes were written, so far only to memory.
    Write { at: usize, bytes: Vec<u8> },
    /// An earlier write waited until its bytes were on the disk.
    Waited { at: usize, len: usize },
    /// All written bytes and the size of the file are on the disk.
    Synced,
    /// A name was created, so far only in memory.
    Named(Name),
    /// A name is on the disk.
    NameSynced(Name),
}

/// The name of a directory or a file.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub enum Name {
    /// The name of the store's directory in its parent.
    Directory,
    /// The name of the file in the store's directory.
    File,
}

impl Event {
    /// The acknowledged number, if this is an acknowledgement.
    pub fn acknowledged(&self) -> Option<u64> {
        match self {
            Self::Acknowledged(number) => Some(*number),
            _ => None,
        }
    }

    /// The event in readable form.
    pub fn describe(&self) -> String {
        match self {
            Self::Write { at, bytes } => format!("{} bytes written at {at}", bytes.len()),
            other => format!("{other:?}"),
        }
    }
}

/// Reads the trace of a job's recording.
pub fn read(job: &Job) -> Result<Vec<Event>> {
    let text = std::fs::read_to_string(job.trace())?;
    let mut parser = Parser::new(job);
    for line in text.lines() {
        parser.line(line).with_context(|| {
            format!("in the trace: {}", line.chars().take(300).collect::<String>())
        })?;
    }
    parser.end()?;
    Ok(parser.events)
}

/// A call as strace prints it: `15634 lseek(3<path>, 4096, SEEK_SET) = 4096`. Every string and
/// every path is in hexadecimal, so they contain no syntax characters.
struct Call<'t> {
    name: &'t str,
    arguments: &'t str,
    result: &'t str,
}

impl<'t> Call<'t> {
    /// Returns `None` for a line that is not a call, and for a failed call, which had no effect.
    fn parse(line: &'t str) -> Result<Option<Self>> {
        let line = line.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
        if line.starts_with("+++") || line.starts_with("---") {
            return Ok(None);
        }
        let (call, result) = line.rsplit_once(" = ").context("it is no call")?;
        let (name, arguments) = call.trim_end().split_once('(').context("it is no call")?;
        let arguments = arguments.strip_suffix(')').context("the arguments do not end")?;
        let has_failed = result.starts_with('-') || result.starts_with('?');
        Ok((!has_failed).then_some(Self { name, arguments, result }))
    }

    /// The string arguments.
    fn strings(&self) -> Result<Vec<Vec<u8>>> {
        ensure!(!self.arguments.contains("\"..."), "a string is cut off");
        let string = |text| {
            let mut bytes = Vec::new();
            unhex(text, &mut bytes).map(|()| bytes)
        };
        self.arguments.split('"').skip(1).step_by(2).map(string).collect()
    }

    fn descriptor(&self) -> Result<(i32, PathBuf)> {
        descriptor(self.arguments)
    }

    /// A numeric argument by its index, counted from the end.
    fn number(&self, from_end: usize) -> Result<usize> {
        let argument = self.arguments.rsplit(", ").nth(from_end).context("too few arguments")?;
        Ok(argument.parse()?)
    }

    /// The concatenated string arguments.
    fn bytes(&self) -> Result<Vec<u8>> {
        Ok(self.strings()?.concat())
    }

    /// The written bytes; the call must have written all of them.
    fn written(&self) -> Result<Vec<u8>> {
        let mut bytes = self.bytes()?;
        let len: usize = self.result.parse()?;
        ensure!(len <= bytes.len(), "more was written than the trace holds");
        bytes.truncate(len);
        Ok(bytes)
    }
}

/// Parses `3<path>` at the beginning of a text.
fn descriptor(text: &str) -> Result<(i32, PathBuf)> {
    let (number, rest) = text.split_once('<').context("it has no descriptor")?;
    let (path, _) = rest.split_once('>').context("the descriptor does not end")?;
    Ok((number.parse()?, path_of(path)?))
}

fn path_of(hex: &str) -> Result<PathBuf> {
    let mut bytes = Vec::new();
    unhex(hex, &mut bytes)?;
    Ok(OsString::from_vec(bytes).into())
}

/// Converts `\x61\x62` to `ab`.
fn unhex(text: &str, bytes: &mut Vec<u8>) -> Result<()> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    for four in text.as_bytes().chunks(4) {
        let [b'\\', b'x', high, low] = *four else { bail!("it is not in hexadecimal") };
        let (high, low) = digit(high).zip(digit(low)).context("it is not in hexadecimal")?;
        bytes.push(high << 4 | low);
    }
    Ok(())
}

/// Converts `ab` to `\x61\x62`.
fn hex(path: &Path) -> String {
    path.as_os_str().as_encoded_bytes().iter().map(|byte| format!("\\x{byte:02x}")).collect()
}

struct Parser {
    parent: PathBuf,
    directory: PathBuf,
    data: PathBuf,
    /// The common prefix of the names of partial files, which are linked to the final name; only
    /// for a backup.
    partial: Option<PathBuf>,
    notes: PathBuf,
    /// The descriptors of the file: whether their writes are synchronous, and their position.
    open: HashMap<i32, (bool, usize)>,
    file_is_there: bool,
    /// Unfinished calls, by thread.
    unfinished: BTreeMap<String, Unfinished>,
    events: Vec<Event>,
}

/// A call that has begun but not ended.
struct Unfinished {
    /// The beginning of its line.
    begun: String,
    /// Whether the call was a note, which took effect at its beginning.
    is_noted: bool,
}

impl Parser {
    fn new(job: &Job) -> Self {
        Self {
            parent: job.directory.clone(),
            directory: job.store(),
            data: job.data(),
            partial: job.is_backup().then(|| job.store().join("data.mdb.partial")),
            notes: job.notes(),
            open: HashMap::new(),
            file_is_there: job.start().exists(),
            unfinished: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    /// Parses a line. Calls on the files of the store must not overlap, because their order would
    /// be unknown.
    fn line(&mut self, line: &str) -> Result<()> {
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let thread = &line[..digits];
        if let Some(begun) = line.strip_suffix(" <unfinished ...>") {
            let is_noted = self.note_early(begun)?;
            let begun = begun.into();
            self.unfinished.insert(thread.into(), Unfinished { begun, is_noted });
            return Ok(());
        }
        if let Some((_, rest)) = line.split_once(" resumed>") {
            let call = self.unfinished.remove(thread).context("what is resumed did not begin")?;
            return if call.is_noted { Ok(()) } else { self.call(&(call.begun + rest)) };
        }
        self.call(line)
    }

    /// Handles a note whose call has not ended. Returns whether it is a note. The reported event
    /// happened before the call.
    fn note_early(&mut self, begun: &str) -> Result<bool> {
        let length = begun.rsplit(", ").next().unwrap_or_default();
        let line = format!("{begun}) = {length}");
        let Ok(Some(call)) = Call::parse(&line) else { return Ok(false) };
        if call.name != "write" || call.descriptor()?.1 != self.notes {
            return Ok(false);
        }
        self.noted(&call.written()?)?;
        Ok(true)
    }

    /// Checks that every call has ended.
    fn end(&self) -> Result<()> {
        ensure!(self.unfinished.is_empty(), "a call does not end");
        Ok(())
    }

    /// Whether a call is on a file or a directory of the store.
    fn is_of_store(&self, line: &str) -> bool {
        let of_parent = [format!("<{}>", hex(&self.parent)), format!("\"{}\"", hex(&self.parent))];
        line.contains(&hex(&self.directory)) || of_parent.iter().any(|path| line.contains(path))
    }

    fn call(&mut self, line: &str) -> Result<()> {
        let Some(call) = Call::parse(line)? else { return Ok(()) };
        if self.unfinished.values().any(|other| self.is_of_store(&other.begun)) {
            let is_alone = !self.is_of_store(line);
            ensure!(is_alone, "two threads at once cannot be put in order");
        }
        match call.name {
            "openat" => self.opened(&call),
            "mkdir" | "mkdirat" => {
                let made = OsString::from_vec(call.bytes()?);
                if Path::new(&made) == self.directory {
                    self.events.push(Event::Named(Name::Directory));
                }
                Ok(())
            }
            "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" => self.written(&call),
            "lseek" => {
                let (number, path) = call.descriptor()?;
                if self.is_file(&path) {
                    self.known(number)?.1 = call.result.parse()?;
                }
                Ok(())
            }
            "fdatasync" | "fsync" => self.synced(&call),
            "mmap" => self.mapped(&call),
            "link" | "linkat" if self.partial.is_some() => self.linked(&call),
            _ => self.unknown(&call),
        }
    }

    fn known(&mut self, number: i32) -> Result<&mut (bool, usize)> {
        self.open.get_mut(&number).with_context(|| format!("nobody opened descriptor {number}"))
    }

    fn opened(&mut self, call: &Call<'_>) -> Result<()> {
        let (number, path) = descriptor(call.result)?;
        // The descriptor number may have belonged to the file before.
        self.open.remove(&number);
        if !self.is_file(&path) {
            return Ok(());
        }
        ensure!(!call.arguments.contains("O_TRUNC"), "the replay knows no O_TRUNC");
        let waits = call.arguments.contains("O_DSYNC") || call.arguments.contains("O_SYNC");
        self.open.insert(number, (waits, 0));
        if call.arguments.contains("O_CREAT") && path == self.data && !self.file_is_there {
            self.file_is_there = true;
            self.events.push(Event::Named(Name::File));
        }
        Ok(())
    }

    fn written(&mut self, call: &Call<'_>) -> Result<()> {
        let (number, path) = call.descriptor()?;
        if path == self.notes {
            return self.noted(&call.written()?);
        }
        if !self.is_file(&path) {
            return Ok(());
        }
        let bytes = call.written()?;
        let (waits, position) = *self.known(number)?;
        let at = match call.name {
            "pwrite64" | "pwritev" => call.number(0)?,
            // The last argument contains the flags.
            "pwritev2" => call.number(1)?,
            _ => position,
        };
        if matches!(call.name, "write" | "writev") {
            self.known(number)?.1 += bytes.len();
        }
        let len = bytes.len();
        self.events.push(Event::Write { at, bytes });
        if waits {
            self.events.push(Event::Waited { at, len });
        }
        Ok(())
    }

    /// A note of the program: a word and its numbers.
    fn noted(&mut self, bytes: &[u8]) -> Result<()> {
        let note = std::str::from_utf8(bytes)?.trim_end();
        let event = match note.split_once(' ').context("a note without a number")? {
            ("opened", _) => Event::Opened,
            ("begun", numbers) => {
                let (number, committed) =
                    numbers.split_once(' ').context("a beginning without a commit")?;
                Event::Begun { number: number.parse()?, committed: committed.parse()? }
            }
            ("acknowledged", number) => Event::Acknowledged(number.parse()?),
            ("flushed", number) => Event::Flushed(number.parse()?),
            _ => bail!("a note {note:?}"),
        };
        self.events.push(event);
        Ok(())
    }

    fn synced(&mut self, call: &Call<'_>) -> Result<()> {
        let (_, path) = call.descriptor()?;
        if self.is_file(&path) {
            self.events.push(Event::Synced);
        } else if path == self.directory {
            self.events.push(Event::NameSynced(Name::File));
        } else if path == self.parent {
            self.events.push(Event::NameSynced(Name::Directory));
        }
        Ok(())
    }

    /// A file that was written under another name gets its final name.
    fn linked(&mut self, call: &Call<'_>) -> Result<()> {
        let paths: Vec<PathBuf> =
            call.strings()?.into_iter().map(|bytes| OsString::from_vec(bytes).into()).collect();
        let [from, to] = &paths[..] else { bail!("a link of {} names", paths.len()) };
        if *to == self.data {
            ensure!(self.is_file(from), "a name for {}, which is not replayed", from.display());
            self.events.push(Event::Named(Name::File));
        }
        Ok(())
    }

    /// Whether a path is that of the file, or of a partial file.
    fn is_file(&self, path: &Path) -> bool {
        let begins = |partial: &PathBuf| {
            path.as_os_str().as_encoded_bytes().starts_with(partial.as_os_str().as_encoded_bytes())
        };
        path == self.data || self.partial.as_ref().is_some_and(begins)
    }

    /// Refuses writable maps, because writes through a map make no system calls.
    fn mapped(&self, call: &Call<'_>) -> Result<()> {
        let is_written = call.arguments.contains("PROT_WRITE")
            && call.arguments.contains("MAP_SHARED")
            && self.is_named(call);
        ensure!(!is_written, "the file is written through a map, which no call tells");
        Ok(())
    }

    fn unknown(&self, call: &Call<'_>) -> Result<()> {
        ensure!(!self.is_named(call), "the replay does not know {}", call.name);
        Ok(())
    }

    /// Whether a call names the file, by a descriptor or by its path.
    fn is_named(&self, call: &Call<'_>) -> bool {
        let hex = hex(&self.data);
        let is_partial =
            |partial: &PathBuf| call.arguments.contains(&format!("<{}", self::hex(partial)));
        call.arguments.contains(&format!("<{hex}>"))
            || call.arguments.contains(&format!("\"{hex}\""))
            || self.partial.as_ref().is_some_and(is_partial)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Converts paths and strings, which are between `'` here, to hexadecimal.
    fn events(lines: &str) -> Result<Vec<String>> {
        events_of(None, lines)
    }

    fn events_of(partial: Option<PathBuf>, lines: &str) -> Result<Vec<String>> {
        let hex =
            |text: &str| text.bytes().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
        let parts = lines.split('\'').enumerate();
        let text: String =
            parts.map(|(n, part)| if n % 2 == 1 { hex(part) } else { part.into() }).collect();
        let mut parser = Parser {
            parent: "/d".into(),
            directory: "/d/store".into(),
            data: "/d/store/data.mdb".into(),
            partial,
            notes: "/d/notes".into(),
            open: HashMap::new(),
            file_is_there: false,
            unfinished: BTreeMap::new(),
            events: Vec::new(),
        };
        text.lines().try_for_each(|line| parser.line(line))?;
        parser.end()?;
        Ok(parser.events.iter().map(|event| format!("{event:?}")).collect())
    }

    const OPEN: &str = "1 openat(AT_FDCWD<'/'>, \"'/d/store/data.mdb'\", O_RDWR|O_CREAT, 0600) = 3<'/d/store/data.mdb'>
1 openat(AT_FDCWD<'/'>, \"'/d/store/data.mdb'\", O_WRONLY|O_DSYNC) = 4<'/d/store/data.mdb'>
";

    #[test]
    fn writes_of_every_kind_have_a_place() {
        let found = events(&format!(
            "{OPEN}1 pwrite64(3<'/d/store/data.mdb'>, \"'ab'\", 2, 512) = 2
1 lseek(3<'/d/store/data.mdb'>, 4096, SEEK_SET) = 4096
1 writev(3<'/d/store/data.mdb'>, [{{iov_base=\"'c'\", iov_len=1}}, {{iov_base=\"'d'\", iov_len=1}}], 2) = 2
1 write(3<'/d/store/data.mdb'>, \"'e'\", 1) = 1
1 pwritev2(3<'/d/store/data.mdb'>, [{{iov_base=\"'f'\", iov_len=1}}], 1, 7, 0) = 1
1 pwrite64(4<'/d/store/data.mdb'>, \"'g'\", 1, 3) = 1
1 fdatasync(3<'/d/store/data.mdb'>)   = 0
1 +++ exited with 0 +++"
        ));
        let expected = [
            "Named(File)",
            "Write { at: 512, bytes: [97, 98] }",
            "Write { at: 4096, bytes: [99, 100] }",
            "Write { at: 4098, bytes: [101] }",
            "Write { at: 7, bytes: [102] }",
            "Write { at: 3, bytes: [103] }",
            "Waited { at: 3, len: 1 }",
            "Synced",
        ];
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn names_and_notes_are_distinguished_from_other_files() {
        let found = events(
            "1 mkdir(\"'/d/store'\", 0777) = 0
1 mkdir(\"'/d/store'\", 0777) = -1 EEXIST (File exists)
1 mkdir(\"'/d/other'\", 0777) = 0
1 fsync(5<'/d/store'>) = 0
1 fsync(5<'/d'>) = 0
1 fsync(5<'/'>) = 0
1 write(1<'/dev/null'>, \"'begun 1 0'\", 9) = 9
1 write(6<'/d/notes'>, \"'begun 1 0'\", 9) = 9
1 write(6<'/d/notes'>, \"'acknowledged 1'\", 14) = 14",
        );
        let expected = [
            "Named(Directory)",
            "NameSynced(File)",
            "NameSynced(Directory)",
            "Begun { number: 1, committed: 0 }",
            "Acknowledged(1)",
        ];
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn a_note_counts_at_its_begin_and_a_sync_at_its_end() {
        let found = events(&format!(
            "{OPEN}1 fdatasync(3<'/d/store/data.mdb'> <unfinished ...>
2 write(6<'/d/notes'>, \"'acknowledged 1'\", 14 <unfinished ...>
3 write(6<'/d/notes'>, \"'acknowledged 2'\", 14) = 14
1 <... fdatasync resumed>) = 0
2 <... write resumed>) = 14"
        ));
        assert_eq!(found.unwrap(), ["Named(File)", "Acknowledged(1)", "Acknowledged(2)", "Synced"]);
    }

    #[test]
    fn a_backup_is_its_partial_file_until_it_is_linked() {
        const PARTIAL: &str = "/d/store/data.mdb.partial";
        let open = "1 openat(AT_FDCWD<'/'>, \"'/d/store/data.mdb.partial.7.0'\", O_WRONLY|O_CREAT|O_EXCL, 0600) = 3<'/d/store/data.mdb.partial.7.0'>\n";
        let found = events_of(
            Some(PARTIAL.into()),
            &format!(
                "{open}1 write(3<'/d/store/data.mdb.partial.7.0'>, \"'ab'\", 2) = 2
1 fsync(3<'/d/store/data.mdb.partial.7.0'> <unfinished ...>
2 +++ exited with 0 +++
1 <... fsync resumed>) = 0
1 linkat(AT_FDCWD<'/'>, \"'/d/store/data.mdb.partial.7.0'\", AT_FDCWD<'/'>, \"'/d/store/data.mdb'\", 0) = 0
1 unlink(\"'/d/store/data.mdb.partial.7.0'\") = 0
1 fsync(3<'/d/store'>) = 0"
            ),
        );
        let expected =
            ["Write { at: 0, bytes: [97, 98] }", "Synced", "Named(File)", "NameSynced(File)"];
        assert_eq!(found.unwrap(), expected);
        let unknown = [
            "1 ftruncate(3<'/d/store/data.mdb.partial.7.0'>, 9000) = 0",
            "1 rename(\"'/d/store/data.mdb.partial.7.0'\", \"'/d/store/data.mdb'\") = 0",
            "1 link(\"'/d/other'\", \"'/d/store/data.mdb'\") = 0",
        ];
        for line in unknown {
            assert!(events_of(Some(PARTIAL.into()), &format!("{open}{line}")).is_err(), "{line}");
        }
    }

    #[test]
    fn what_cannot_be_replayed_is_an_error() {
        let lines = [
            "1 ftruncate(3<'/d/store/data.mdb'>, 9000) = 0",
            "1 mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_SHARED, 3<'/d/store/data.mdb'>, 0) = 0x7f",
            "1 unlink(\"'/d/store/data.mdb'\") = 0",
            "1 pwrite64(9<'/d/store/data.mdb'>, \"'ab'\", 2, 512) = 2",
            "1 pwrite64(3<'/d/store/data.mdb'>, \"'ab'\"..., 200, 512) = 200",
            "1 pwrite64(3<'/d/store/data.mdb'>, \"'ab'\", 2, 512 <unfinished ...>",
            "1 fsync(3<'/d/store/data.mdb'> <unfinished ...>\n2 fsync(5<'/d'>) = 0\n1 <... fsync resumed>) = 0",
        ];
        for line in lines {
            assert!(events(&format!("{OPEN}{line}")).is_err(), "{line}");
        }
        // A call that does not concern the store.
        events("1 ftruncate(3<'/d/store/lock.mdb'>, 9000) = 0").unwrap();
    }
}
