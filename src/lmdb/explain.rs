//! Converts errors of the engine, the checker and the system.

use std::path::Path;
use std::{fs, io};

use heed::MdbError;

use super::file::FileError;
use crate::{Error, HeldPages, LmdbError, StorageError};

/// Converts a system error of an operation that only reads.
pub(super) fn explain_read(error: io::Error, path: &Path) -> Error {
    if error.kind() == io::ErrorKind::PermissionDenied {
        return Error::Storage(StorageError::PermissionDenied {
            action: "read",
            path: path.into(),
        });
    }
    explain(error.into(), path)
}

/// Converts an error of the engine.
pub(super) fn explain(error: heed::Error, path: &Path) -> Error {
    let path = path.to_path_buf();
    match error {
        heed::Error::Io(source) => match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Error::Storage(StorageError::DiskFull {
                path,
                source: source.into(),
                held: HeldPages::default(),
            }),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Error::Storage(StorageError::PermissionDenied { action: "write", path })
            }
            io::ErrorKind::NotFound => Error::Storage(StorageError::MissingDirectory { path }),
            _ => Error::Storage(StorageError::Io { path, source: source.into() }),
        },
        heed::Error::EnvAlreadyOpened => Error::Lmdb(LmdbError::AlreadyOpen { path }),
        heed::Error::Mdb(MdbError::Invalid) => Error::Storage(StorageError::NotAStore {
            path,
            why: "its first page is not a page of LMDB".into(),
        }),
        heed::Error::Mdb(MdbError::VersionMismatch) => Error::Storage(StorageError::NotAStore {
            path,
            why: "another version of LMDB wrote it".into(),
        }),
        heed::Error::Mdb(fault @ (MdbError::Corrupted | MdbError::PageNotFound)) => {
            Error::Storage(StorageError::Damaged { path, why: fault.to_string() })
        }
        heed::Error::Mdb(MdbError::Panic) => {
            Error::Storage(StorageError::Unusable { path, source: None })
        }
        other => Error::Backend(other.into()),
    }
}

/// Converts an error of the checker.
pub(super) fn explain_file(error: FileError, path: &Path) -> Error {
    let why = format!("{error}{}", hint_at_birth(path));
    let path = path.to_path_buf();
    match error {
        FileError::Io(error) => explain_read(error, &path),
        FileError::NoSoundMeta { .. } => Error::Storage(StorageError::Damaged { path, why }),
        _ => Error::Storage(StorageError::NotAStore { path, why }),
    }
}

/// The hint for a small file: a power failure may have interrupted the creation of the store. The
/// file is not deleted, since a damaged store can have the same contents.
fn hint_at_birth(path: &Path) -> &'static str {
    /// The hint is given only for files of up to this length, since a longer file probably contains
    /// commits.
    const MOST_BYTES: u64 = 64 << 10;
    let is_small = fs::metadata(path.join("data.mdb")).is_ok_and(|file| file.len() <= MOST_BYTES);
    if is_small {
        "; if the machine went down when the store was opened for the first time, nothing was committed: remove data.mdb"
    } else {
        ""
    }
}
