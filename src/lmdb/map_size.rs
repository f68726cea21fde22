//! Changing the size of the map.
#![allow(unsafe_code)]

use std::path::Path;

use heed::{Env, MdbError, WithoutTls};

use super::{address_space, explain, file};
use crate::{Error, LmdbError, Result, StorageError};

/// The largest number of times in a row that a transaction adopts a map that another process has
/// enlarged.
// Other processes enlarge a map rarely. More adoptions in a row indicate a fault, which must not
// cause an endless loop.
pub(super) const MOST_ADOPTIONS: u32 = 10;

/// Sets the size of the map to `bytes`.
///
/// # Safety
/// No thread of this process may read the map during the call.
pub(super) unsafe fn set(env: &Env<WithoutTls>, path: &Path, bytes: usize) -> Result<()> {
    // SAFETY: the caller upholds the conditions above.
    unsafe { map_again(env, path, bytes, bytes) }
}

/// Sets the size of the map to the size that another process has set.
///
/// # Safety
/// The conditions of [`set`] apply.
pub(super) unsafe fn adopt(env: &Env<WithoutTls>, path: &Path) -> Result<()> {
    let meta = file::read_meta(path.join("data.mdb"))
        .map_err(|error| explain::explain_file(error, path))?;
    let bytes = usize::try_from(meta.map_bytes).unwrap_or(usize::MAX);
    // SAFETY: the caller upholds the conditions above.
    unsafe { map_again(env, path, 0, bytes) }
}

/// Begins a transaction while a store is opened. Opening the file reads the size of the map.
/// Another process may enlarge the map before the transaction begins, because a write transaction
/// waits for the current writer. Then adopts the larger map and begins again.
///
/// # Safety
/// The conditions of [`set`] apply until the first transaction is open.
pub(super) unsafe fn adopting<'e, T>(
    env: &'e Env<WithoutTls>,
    path: &Path,
    begin: impl Fn(&'e Env<WithoutTls>) -> heed::Result<T>,
) -> Result<T> {
    let mut adoptions = 0;
    loop {
        match begin(env) {
            Err(heed::Error::Mdb(MdbError::MapResized)) if adoptions < MOST_ADOPTIONS => {
                // SAFETY: the caller upholds the conditions above.
                unsafe { adopt(env, path) }?;
                adoptions += 1;
            }
            outcome => return outcome.map_err(|error| explain::explain(error, path)),
        }
    }
}

/// Makes the engine map the file again with `argument` bytes. If `argument` is 0, the engine uses
/// the size in the file, which is `bytes`.
unsafe fn map_again(
    env: &Env<WithoutTls>,
    path: &Path,
    argument: usize,
    bytes: usize,
) -> Result<()> {
    // The engine unmaps the old map before it maps the new one, and has no map if the system
    // refuses. A probe makes this case rare.
    address_space::probe(bytes).map_err(|source| {
        Error::Lmdb(LmdbError::AddressSpace { wanted_bytes: bytes, source: source.into() })
    })?;
    // SAFETY: the caller upholds the conditions above.
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
