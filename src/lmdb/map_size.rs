//! Changing the size of the map.
#![allow(unsafe_code)]

use std::path::Path;

use heed::{Env, MdbError, WithoutTls};

use super::{address_space, file, open};
use crate::{Error, LmdbError, Result, StorageError};

/// The largest number of times in a row that a transaction adopts a map that another process has
/// enlarged.
// Other processes enlarge a map rarely. More adoptions in a row are a fault, which must not become
// an endless loop.
pub(super) const MOST_ADOPTIONS: u32 = 10;

/// Makes the map as large as `bytes`.
///
/// # Safety
/// No thread of this process may read the map during the call.
pub(super) unsafe fn set(env: &Env<WithoutTls>, path: &Path, bytes: usize) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { map_again(env, path, bytes, bytes) }
}

/// Makes the map as large as another process has made it.
///
/// # Safety
/// As [`set`].
pub(super) unsafe fn adopt(env: &Env<WithoutTls>, path: &Path) -> Result<()> {
    let meta =
        file::read_meta(path.join("data.mdb")).map_err(|error| open::explain_file(error, path))?;
    let bytes = usize::try_from(meta.map_bytes).unwrap_or(usize::MAX);
    // SAFETY: the caller's promise.
    unsafe { map_again(env, path, 0, bytes) }
}

/// Opens the first transactions of an engine. Another process may enlarge the map meanwhile: the
/// size was read when the file was opened, and a write transaction waits for the current writer.
///
/// # Safety
/// As [`set`], until the first of them is open.
pub(super) unsafe fn adopting<'e, T>(
    env: &'e Env<WithoutTls>,
    path: &Path,
    begin: impl Fn(&'e Env<WithoutTls>) -> heed::Result<T>,
) -> Result<T> {
    let mut adoptions = 0;
    loop {
        match begin(env) {
            Err(heed::Error::Mdb(MdbError::MapResized)) if adoptions < MOST_ADOPTIONS => {
                // SAFETY: the caller's promise.
                unsafe { adopt(env, path) }?;
                adoptions += 1;
            }
            outcome => return outcome.map_err(|error| open::explain(error, path)),
        }
    }
}

/// Makes the engine map the file again: with `argument` bytes, or for 0 with the size in the file,
/// which is `bytes`.
unsafe fn map_again(
    env: &Env<WithoutTls>,
    path: &Path,
    argument: usize,
    bytes: usize,
) -> Result<()> {
    // The engine unmaps the old map before it maps the new one, and has none if the system
    // refuses. A probe before it makes that rare.
    address_space::probe(bytes).map_err(|source| {
        Error::Lmdb(LmdbError::AddressSpace { wanted_bytes: bytes, source: source.into() })
    })?;
    // SAFETY: the caller's promise.
    unsafe { env.resize(argument) }.map_err(|error| {
        let source = match error {
            heed::Error::Io(source) => source,
            other => std::io::Error::other(other.to_string()),
        };
        Error::Storage(StorageError::Unusable {
            path: path.to_owned(),
            source: Some(source.into()),
        })
    })
}
