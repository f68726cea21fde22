//! The position of long work in a file, so that the work can resume after a kill.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::address::shown;
use crate::catalog::Part;
use crate::failure::{Failure, Result};
use crate::shown::hex;
use crate::word::bytes_of_hex;

/// The shortest time between two writes of the file, unless a count has changed. After a kill, at
/// most the work of this time and of one step is repeated.
const PAUSE: Duration = Duration::from_millis(200);

/// How far the work has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// The command, the store and the parts, so that no other work resumes here.
    work: Vec<String>,
    /// The number of parts that are done.
    done: usize,
    /// The current stage of the part after these.
    stage: u32,
    /// The last key that this stage has visited, in hexadecimal digits.
    last: Option<String>,
    /// What the work has counted: faults, or entries that it changed.
    pub counted: u64,
    /// The entries that were read.
    pub entries: u64,
}

/// The position of work on some parts, one after the other. A part has stages, and a stage visits
/// keys in order.
#[derive(Debug)]
pub struct Position {
    file: Option<PathBuf>,
    reached: Reached,
    /// The part that is visited, counted from 0.
    part: usize,
    written: Instant,
}

impl Position {
    /// The position of `command` on these parts in `file`, or the beginning if there is no such
    /// file.
    pub fn open(file: Option<&Path>, command: &str, store: &str, parts: &[&Part]) -> Result<Self> {
        let names = parts.iter().map(|part| format!("{}/{}", part.schema, part.name));
        let work = [command.to_owned(), shown(store)].into_iter().chain(names).collect();
        let failed = |path: &Path, why: String| {
            Failure::new(format!("the file {} cannot be resumed: {why}", path.display()))
        };
        let mut reached = Reached { work, ..Reached::default() };
        if let Some(path) = file {
            match fs::read(path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(failed(path, error.to_string())),
                Ok(bytes) => {
                    let read: Reached = serde_json::from_slice(&bytes)
                        .map_err(|error| failed(path, error.to_string()))?;
                    if read.work != reached.work {
                        let [theirs, own] = [&read.work, &reached.work].map(|work| work.join(" "));
                        let why = format!(
                            "it belongs to {theirs:?}, and this is {own:?}; remove it to begin again"
                        );
                        return Err(failed(path, why));
                    }
                    reached = read;
                }
            }
        }
        let position =
            Self { file: file.map(Path::to_owned), reached, part: 0, written: Instant::now() };
        position.write()?;
        Ok(position)
    }

    /// The position that was reached. At the beginning of a run, the position that an earlier run
    /// has reached.
    pub fn before(&self) -> &Reached {
        &self.reached
    }

    /// Whether the part that is visited now was done before.
    pub fn is_done(&self) -> bool {
        self.part < self.reached.done
    }

    /// `None` if this stage of the part was done before. Otherwise the last key that was visited,
    /// if any.
    pub fn stage(&self, stage: u32) -> Option<Option<Vec<u8>>> {
        match (self.part == self.reached.done, stage.cmp(&self.reached.stage)) {
            (true, std::cmp::Ordering::Less) => None,
            (true, std::cmp::Ordering::Equal) => {
                Some(self.reached.last.as_deref().and_then(bytes_of_hex))
            }
            _ => Some(None),
        }
    }

    /// Notes the position. `counted` and `entries` are those of the whole work.
    pub fn reach(
        &mut self,
        (stage, last): (u32, Option<&[u8]>),
        counted: u64,
        entries: u64,
    ) -> Result {
        let has_counted = counted != self.reached.counted;
        let last = last.map(hex);
        let (done, work) = (self.part, std::mem::take(&mut self.reached.work));
        self.reached = Reached { work, done, stage, last, counted, entries };
        // If the count has changed, the file is written at once: a fault that was printed should
        // not be printed again after a kill.
        if has_counted || self.written.elapsed() >= PAUSE {
            self.write()?;
            self.written = Instant::now();
        }
        Ok(())
    }

    /// Ends a part.
    pub fn end_part(&mut self) {
        self.part += 1;
        if self.reached.done < self.part {
            (self.reached.done, self.reached.stage, self.reached.last) = (self.part, 0, None);
        }
    }

    /// Ends the work: removes the file.
    pub fn end(self) -> Result {
        let Some(path) = &self.file else { return Ok(()) };
        fs::remove_file(path).map_err(|error| not_written(path, &error))
    }

    fn write(&self) -> Result {
        let Some(path) = &self.file else { return Ok(()) };
        let text =
            serde_json::to_vec(&self.reached).map_err(|error| Failure::new(error.to_string()))?;
        // A rename replaces the file at once, so a kill leaves the old position or the new one.
        let mut name = path.clone().into_os_string();
        name.push(".new");
        let new = PathBuf::from(name);
        fs::write(&new, text)
            .and_then(|()| fs::rename(&new, path))
            .map_err(|error| not_written(path, &error))
    }
}

fn not_written(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("the position in {} cannot be written: {error}", path.display()))
}
