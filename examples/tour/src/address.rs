//! Addresses of stores.

use std::path::Path;

use keyloom::{AnyStore, Result};
use keyloom_redb::Redb;

use crate::TourResult;

/// The backends of other crates, with their schemes. To run the tour on another backend, add it
/// here.
const BACKENDS: &[(&str, fn(&str) -> Result<AnyStore>)] = &[
    ("redb", Redb::open_address),
    #[cfg(feature = "postgres")]
    ("postgres", keyloom_postgres::Postgres::open_address),
    #[cfg(feature = "etcd")]
    ("etcd", keyloom_etcd::Etcd::open_address),
    #[cfg(feature = "foundationdb")]
    ("fdb", keyloom_foundationdb::FoundationDb::open_address),
];

/// Turns a path into the address of an LMDB store. Creates missing parent directories.
pub fn full(given: &str) -> TourResult<String> {
    let scheme = given.split_once(':').map(|(scheme, _)| scheme);
    let address = match scheme {
        Some(scheme) if !scheme.contains(['/', '.']) => given.to_owned(),
        _ => format!("lmdb:{given}"),
    };
    let path = ["lmdb:", "redb:"].iter().find_map(|scheme| address.strip_prefix(scheme));
    if let Some(parent) = path.and_then(|path| Path::new(path).parent()) {
        std::fs::create_dir_all(parent).map_err(|error| {
            format!("the directory {} cannot be made: {error}", parent.display())
        })?;
    }
    Ok(address)
}

/// Opens the store. The error of an unknown address has the addresses that this program opens.
pub fn open(address: &str) -> TourResult<AnyStore> {
    let scheme = address.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_backend = BACKENDS.iter().any(|&(known, _)| known == scheme);
    if ["memory", "lmdb"].contains(&scheme) || is_backend {
        return Ok(AnyStore::open_with(address, BACKENDS)?);
    }
    let known: Vec<_> = BACKENDS.iter().map(|(known, _)| format!("{known}:")).collect();
    Err(format!(
        "{scheme}: begins no address of this program; use a directory such as ./data, or one of \
         memory:, lmdb:, {}; other stores need `--features` (see --help)",
        known.join(", ")
    )
    .into())
}

/// A remark on the store that helps to interpret its times.
pub fn nature(store: &AnyStore) -> &'static str {
    match store {
        AnyStore::Memory(_) => ", gone when the tour ends",
        AnyStore::Lmdb(_) => " (LMDB, every commit synced)",
        _ => "",
    }
}

/// The location of the keys.
pub fn place(store: &AnyStore) -> TourResult<String> {
    Ok(match store {
        AnyStore::Memory(_) => " in memory".into(),
        AnyStore::Lmdb(lmdb) => {
            let megabytes = lmdb.statistics()?.file_bytes as f64 / 1e6;
            format!(" in a file of {megabytes:.1} MB; run it again to use them as they are")
        }
        _ => "; run it again to use them as they are".into(),
    })
}
