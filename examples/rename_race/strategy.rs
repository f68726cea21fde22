//! The ways to rename concurrently. Each way decides first, then pauses, then renames.

use std::thread::sleep;
use std::time::Duration;

use keyloom::{Error, Lmdb, Result, Store};
use keyloom_documents::files::FilesError;
use keyloom_patterns::locking::{Guard, Lock, LockPath, Session};

use crate::world::{Move, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Decides and renames in one transaction.
    Transaction,
    /// Decides in a snapshot; renames if the directories still have the versions that were read.
    Versions,
    /// Locks everything.
    GlobalLock,
    /// Locks the directories that change exclusively, and the directories above them in shared
    /// mode.
    DocumentLocks,
    /// Locks the two paths.
    TreeLocks,
    /// Decides in a snapshot, and renames without protection: the control.
    Nothing,
}

impl Strategy {
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Transaction, "transaction"),
        (Self::Versions, "versions"),
        (Self::GlobalLock, "global-lock"),
        (Self::DocumentLocks, "document-locks"),
        (Self::TreeLocks, "tree-locks"),
        (Self::Nothing, "nothing"),
    ];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, other)| *other == name).map(|(strategy, _)| *strategy)
    }
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    Renamed,
    /// The decision was out of date. The strategy noticed this and repeated the attempt.
    Repeated,
    /// The decision was out of date. The strategy did not notice, and the file system refused the
    /// rename.
    Refused,
}

pub fn attempt(
    strategy: Strategy,
    world: &World,
    session: &Session<Lmdb>,
    think: Duration,
) -> Result<Attempt> {
    match strategy {
        Strategy::Transaction => in_a_transaction(world, think),
        Strategy::Versions => with_versions(world, think),
        Strategy::GlobalLock => {
            let guard = session.lock(&[Lock::exclusive(LockPath::root())])?;
            under(guard, world, think, None)
        }
        Strategy::DocumentLocks => {
            let Some(planned) = world.decide(&world.store.snapshot()?)? else {
                return Ok(Attempt::Repeated);
            };
            let path = |id: &u32| LockPath::of(["directories"]).child(*id);
            let lock = |id: &u32| match planned.changed.contains(id) {
                true => Lock::exclusive(path(id)),
                false => Lock::shared(path(id)),
            };
            let locks: Vec<_> = planned.directories.iter().map(lock).collect();
            under(session.lock(&locks)?, world, think, Some(planned))
        }
        Strategy::TreeLocks => {
            let Some(planned) = world.decide(&world.store.snapshot()?)? else {
                return Ok(Attempt::Repeated);
            };
            let locks = [&planned.from, &planned.to].map(|path| {
                let names = path.split('/').filter(|name| !name.is_empty());
                Lock::exclusive(LockPath::of(names))
            });
            under(session.lock(&locks)?, world, think, Some(planned))
        }
        Strategy::Nothing => {
            let planned = world.decide(&world.store.snapshot()?)?;
            let Some(planned) = planned else { return Ok(Attempt::Repeated) };
            sleep(think);
            let renamed =
                world.store.transact(|txn| world.files.rename(txn, &planned.from, &planned.to));
            refused_or(renamed)
        }
    }
}

fn in_a_transaction(world: &World, think: Duration) -> Result<Attempt> {
    let renamed = world.store.transact(|txn| {
        let Some(planned) = world.decide(txn)? else { return Ok(Attempt::Repeated) };
        sleep(think);
        world.files.rename(txn, &planned.from, &planned.to).map(|()| Attempt::Renamed)
    });
    renamed.or_else(|error| refused_or(Err(error)))
}

fn with_versions(world: &World, think: Duration) -> Result<Attempt> {
    let snapshot = world.store.snapshot()?;
    let Some(planned) = world.decide(&snapshot)? else { return Ok(Attempt::Repeated) };
    let mut seen = Vec::new();
    for id in &planned.directories {
        let version = world.versions.get(&snapshot, id)?.map(|record| record.version);
        seen.push((*id, version.unwrap_or_default()));
    }
    drop(snapshot);
    sleep(think);
    let renamed = world.store.transact(|txn| {
        for (id, version) in &seen {
            let now = world.versions.get(txn, id)?.map(|record| record.version);
            if now != Some(*version) {
                return Ok(Attempt::Repeated);
            }
        }
        for (id, version) in seen.iter().filter(|(id, _)| planned.changed.contains(id)) {
            world.versions.update(txn, id, *version, ())?;
        }
        world.files.rename(txn, &planned.from, &planned.to).map(|()| Attempt::Renamed)
    });
    renamed.or_else(|error| refused_or(Err(error)))
}

/// Renames under a lock. First verifies a decision that was made before the lock was acquired; from
/// then on the lock keeps it valid.
fn under(
    guard: Guard<'_, Lmdb>,
    world: &World,
    think: Duration,
    planned: Option<Move>,
) -> Result<Attempt> {
    let snapshot = world.store.snapshot()?;
    let planned = match planned {
        Some(planned) if !is_true(world, &planned, &snapshot)? => None,
        Some(planned) => Some(planned),
        None => world.decide(&snapshot)?,
    };
    drop(snapshot);
    let Some(planned) = planned else {
        guard.release()?;
        return Ok(Attempt::Repeated);
    };
    sleep(think);
    let renamed = guard.transact(|txn| world.files.rename(txn, &planned.from, &planned.to));
    guard.release()?;
    refused_or(renamed)
}

/// Whether the source and the target directory are still where they were.
fn is_true(world: &World, planned: &Move, reader: &impl keyloom::Reader) -> Result<bool> {
    let parent = |path: &str| path.rsplit_once('/').map_or("/", |(parent, _)| parent).to_owned();
    let at = |path: &str| -> Result<Option<u32>> {
        Ok(world.files.get(reader, path)?.map(|(id, _)| id))
    };
    let source = world.files.get(reader, &planned.from)?;
    let parents = [at(&parent(&planned.from))?, at(&parent(&planned.to))?];
    Ok(source.is_some() && parents == planned.changed.map(Some))
}

fn refused_or(renamed: Result<()>) -> Result<Attempt> {
    match renamed {
        Ok(()) => Ok(Attempt::Renamed),
        Err(error) if Error::downcast_ref::<FilesError>(&error).is_some() => Ok(Attempt::Refused),
        Err(error) => Err(error),
    }
}
