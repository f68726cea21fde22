//! The messages of a writer over a pipe. Each mark is a separate write call, made at the moment
//! that it reports.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | the kind |
//! | 8 | a number, little-endian |
//! | 1 | number of following bytes |
//! | 0 to 255 | a key |

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;

use anyhow::{Result, bail};

/// The event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The process runs and is about to open the store.
    Opening,
    /// The store is open; with the number 1, together with a snapshot that stays open.
    Opened,
    /// A transaction has begun.
    Begun,
    /// The map is full, and grows next.
    Full,
    /// The commit of the transaction begins; the number is the progress after it. In a batch, the
    /// key is the progress before the commit, in 8 bytes, little-endian.
    Committing,
    /// The transaction is committed: the acknowledgement. The number is the same.
    Acknowledged,
    /// A backup begins; the number is the progress.
    Copying,
    /// The backup is complete.
    Copied,
    /// The progress of long work. For a repair, the key is its position, and the number is 1 in the
    /// second phase.
    Reached,
    /// The work is done.
    Finished,
}

const KINDS: [Kind; 10] = [
    Kind::Opening,
    Kind::Opened,
    Kind::Begun,
    Kind::Full,
    Kind::Committing,
    Kind::Acknowledged,
    Kind::Copying,
    Kind::Copied,
    Kind::Reached,
    Kind::Finished,
];

/// One mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub kind: Kind,
    pub number: u64,
    pub key: Vec<u8>,
}

const HEAD: usize = 10;

/// Removes the first complete mark from the unread bytes.
pub fn take(unread: &mut Vec<u8>) -> Result<Option<Mark>> {
    let Some(head) = unread.first_chunk::<HEAD>() else { return Ok(None) };
    let length = HEAD + usize::from(head[HEAD - 1]);
    let Some(&kind) = KINDS.get(usize::from(head[0])) else {
        bail!("a mark of an unknown kind {}", head[0]);
    };
    let mut number = [0; 8];
    number.copy_from_slice(&head[1..9]);
    let number = u64::from_le_bytes(number);
    if unread.len() < length {
        return Ok(None);
    }
    let key = unread.drain(..length).skip(HEAD).collect();
    Ok(Some(Mark { kind, number, key }))
}

/// The writing end of the pipe.
pub struct Pen {
    // Not `Stdout`, which buffers up to the end of a line.
    pipe: File,
}

impl Pen {
    pub fn new() -> Result<Self> {
        Ok(Self { pipe: File::from(std::io::stdout().as_fd().try_clone_to_owned()?) })
    }

    /// Writes a mark.
    ///
    /// # Errors
    /// If the reader has closed the pipe; then the process must end.
    pub fn mark(&self, kind: Kind, number: u64) -> keyloom::Result<()> {
        self.mark_key(kind, number, &[])
    }

    /// Writes a mark about a key, with at most 255 bytes of the key.
    pub fn mark_key(&self, kind: Kind, number: u64, key: &[u8]) -> keyloom::Result<()> {
        let written = (&self.pipe).write_all(&bytes_of(kind, number, key));
        written.map_err(|error| keyloom::Error::Backend(error.into()))
    }
}

fn bytes_of(kind: Kind, number: u64, key: &[u8]) -> Vec<u8> {
    let length = u8::try_from(key.len()).unwrap_or(u8::MAX);
    let mut bytes = vec![kind as u8];
    bytes.extend(number.to_le_bytes());
    bytes.push(length);
    bytes.extend(&key[..usize::from(length)]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_taken_whole_and_in_order() {
        let mut all = Vec::new();
        for (number, kind) in (0..).zip(KINDS) {
            assert_eq!(kind as usize, number as usize);
            all.extend(bytes_of(kind, number, &[7; 3]));
        }
        let (mut unread, mut taken) = (Vec::new(), Vec::new());
        for byte in all {
            unread.push(byte);
            taken.extend(take(&mut unread).ok().flatten());
        }
        assert!(unread.is_empty());
        let kinds: Vec<Kind> = taken.iter().map(|mark| mark.kind).collect();
        assert_eq!(kinds, KINDS);
        assert!((0..).zip(&taken).all(|(n, mark)| mark.number == n && mark.key == [7; 3]));
    }

    #[test]
    fn what_is_no_mark_is_an_error() {
        assert!(take(&mut vec![KINDS.len() as u8; HEAD]).is_err());
    }
}
