//! Reads the lines of an export, and verifies each of them.

use std::io::{BufRead, Read};

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::digest::{Digest, check_of};
use crate::failure::{Failure, Result};
use crate::ndjson::{KIND, VERSION};
use crate::output::grouped;
use crate::selection::one_key;
use crate::shown::{self, json_safe};
use crate::word::bytes_of_hex;

/// The most bytes of the first line.
const MOST_FIRST: u64 = 1 << 20;
/// The most bytes of another line. A value has two digits per byte.
const MOST_LINE: u64 = 1 << 30;

/// The fields of all kinds of lines. Those that are present determine the kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    keyloom: Option<String>,
    version: Option<u32>,
    #[serde(rename = "prefix")]
    _prefix: Option<IgnoredAny>,
    key: Option<String>,
    value_hex: Option<String>,
    check: Option<String>,
    #[serde(rename = "form")]
    _form: Option<IgnoredAny>,
    #[serde(rename = "decoded")]
    _decoded: Option<IgnoredAny>,
    entries: Option<u64>,
    sha256: Option<String>,
}

/// The lines of an export.
#[derive(Debug)]
pub struct Lines<R> {
    from: R,
    /// The name of the file, for messages.
    name: String,
    /// The number of the current line, from 1.
    number: u64,
    text: Vec<u8>,
    last_key: Option<Vec<u8>>,
    digest: Digest,
}

impl<R: BufRead> Lines<R> {
    /// Reads and verifies the first line.
    pub fn open(name: String, from: R) -> Result<Self> {
        let (text, digest) = (Vec::new(), Digest::default());
        let mut lines = Self { from, name, number: 0, text, last_key: None, digest };
        let Some(fields) = lines.fields()? else {
            return Err(Failure::new(format!("{} is empty; export again", lines.name)));
        };
        match (fields.keyloom.as_deref(), fields.version) {
            (Some(KIND), Some(VERSION)) => Ok(lines),
            (Some(KIND), Some(other)) => Err(lines.fault(&format!(
                "the export has the version {other}, this command reads version {VERSION}; use a newer keyloom"
            ))),
            _ => Err(lines.fault("this is not the first line of an output of `keyloom export`")),
        }
    }

    /// The next entry. Returns `None` after the last line, if that line agrees with all entries.
    pub fn read(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let Some(fields) = self.fields()? else {
            return Err(self.fault(
                "the file is truncated: the line with the number of entries is missing; export again",
            ));
        };
        match fields {
            Fields { key: Some(key), value_hex: Some(value), check: Some(check), .. } => {
                self.entry(&key, &value, &check).map(Some)
            }
            Fields { entries: Some(entries), sha256: Some(sha256), .. } => {
                self.end(entries, &sha256).map(|()| None)
            }
            _ => Err(self.fault("this is neither an entry nor the last line; export again")),
        }
    }

    /// The digest of the entries read so far.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    fn entry(&mut self, key: &str, value: &str, check: &str) -> Result<(Vec<u8>, Vec<u8>)> {
        let key = one_key(key).map_err(|error| self.fault(&format!("{error}; export again")))?;
        let value = bytes_of_hex(value).ok_or_else(|| {
            self.fault("value_hex does not consist of pairs of hexadecimal digits; export again")
        })?;
        if check_of(&key, &value) != *check {
            return Err(self.fault(
                "the check does not fit to the key and the value: the line was changed; export again",
            ));
        }
        if self.last_key.as_deref().is_some_and(|last| last >= &key[..]) {
            let why = "does not follow the key of the line before; export again";
            return Err(self.fault(&format!("the key {} {why}", shown::key(&key))));
        }
        self.digest.add(&key, &value);
        self.last_key = Some(key.to_vec());
        Ok((key.to_vec(), value))
    }

    fn end(&mut self, entries: u64, sha256: &str) -> Result {
        let found = self.digest.entries();
        if found != entries {
            let (found, entries) = (grouped(found), grouped(entries));
            return Err(self.fault(&format!(
                "the export had {entries} entries, the file has {found}: lines are missing or added; export again"
            )));
        }
        if self.digest.sha256() != sha256 {
            return Err(self.fault("the SHA-256 is not that of the entries; export again"));
        }
        while self.next_line()? {
            if !self.text.trim_ascii().is_empty() {
                return Err(self.fault(
                    "the file continues after the last line of the export; import each export by itself",
                ));
            }
        }
        Ok(())
    }

    /// The fields of the next line; `None` at the end of the file.
    fn fields(&mut self) -> Result<Option<Fields>> {
        if !self.next_line()? {
            return Ok(None);
        }
        let text = self.text.trim_ascii_end();
        serde_json::from_slice(text).map(Some).map_err(|error| self.not_json(&error))
    }

    /// Reads the next line. Returns `false` at the end of the file.
    fn next_line(&mut self) -> Result<bool> {
        self.text.clear();
        let most = if self.number == 0 { MOST_FIRST } else { MOST_LINE };
        match Read::by_ref(&mut self.from).take(most).read_until(b'\n', &mut self.text) {
            Ok(0) => Ok(false),
            Ok(bytes) => {
                self.number += 1;
                if bytes as u64 == most && self.text.last() != Some(&b'\n') {
                    return Err(self.too_long());
                }
                Ok(true)
            }
            Err(error) => Err(Failure::new(format!(
                "{} cannot be read after line {}: {error}",
                self.name, self.number
            ))),
        }
    }

    fn too_long(&self) -> Failure {
        self.fault(match self.number {
            1 => "this is not an export: the line has more than 1 MiB",
            _ => "the line has more than 1 GiB; use `keyloom copy` for values of this length",
        })
    }

    fn fault(&self, why: &str) -> Failure {
        Failure::new(format!("{}, line {}: {why}", self.name, self.number))
    }

    fn not_json(&self, error: &serde_json::Error) -> Failure {
        let (text, column) = (error.to_string(), error.column().max(1));
        // `serde_json` counts lines from the beginning of this line.
        let text = json_safe(text.split(" at line ").next().unwrap_or_default());
        let why = match error.is_eof() {
            true => "the line ends too early: the file is truncated, or the line was changed",
            false => "the line was changed",
        };
        let (name, number) = (&self.name, self.number);
        Failure::new(format!(
            "{name}, line {number}, column {column}: {why} ({text}); export again"
        ))
    }
}
