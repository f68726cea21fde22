//! The file system of the concurrent renames, and the decisions of the renames.

use keyloom::{Lmdb, Reader, Result, Store, Subspace};
use keyloom_documents::files::Files;
use keyloom_patterns::locking::Locks;
use keyloom_patterns::{Schema, VersionedTable};

const TOPS: u8 = 8;
const SUBS: u32 = 4;
const FILES: u32 = 6;

/// The files with everything that a strategy needs.
pub struct World {
    pub store: Lmdb,
    pub files: Files,
    pub locks: Locks,
    /// The versions of the directories, by their ids.
    pub versions: VersionedTable<u32, ()>,
}

/// A rename that was decided in a snapshot or a transaction.
pub struct Move {
    pub from: String,
    pub to: String,
    /// The ids of the directories that both paths lead through, in order.
    pub directories: Vec<u32>,
    /// The two of them whose contents change.
    pub changed: [u32; 2],
}

impl World {
    pub fn open(store: Lmdb) -> Result<Self> {
        let schema = Schema::open(&store, "race")?;
        let files = Files::open(&schema)?;
        let locks = Locks::open(&schema, "locks")?;
        drop(schema);
        Ok(Self { files, locks, versions: VersionedTable::new(&Subspace::new("versions")), store })
    }

    /// Creates the directories and the files; each file contains its name.
    pub fn fill(&self) -> Result<()> {
        for top in 0..TOPS {
            self.store.transact(|txn| {
                let mut ids = vec![self.files.create_directory(txn, &format!("/d{top}"))?];
                for sub in 0..SUBS {
                    let path = format!("/d{top}/s{top}{sub}");
                    ids.push(self.files.create_directory(txn, &path)?);
                    for file in 0..FILES {
                        let name = format!("f{top}{sub}{file}");
                        self.files.write(txn, &format!("{path}/{name}"), name.as_bytes())?;
                    }
                }
                ids.iter().try_for_each(|id| self.versions.create(txn, id, ()).map(drop))
            })?;
        }
        Ok(())
    }

    /// Chooses a file or a directory, and its target. Returns `None` if the target is the current
    /// place.
    pub fn decide(&self, reader: &impl Reader) -> Result<Option<Move>> {
        let [first, second] = [(); 2].map(|()| format!("/d{}", fastrand::u8(..TOPS)));
        let mut from = vec![self.directory(reader, &first)?];
        let mut to = vec![self.directory(reader, &second)?];
        let Some((id, entry)) = self.any_of(reader, &first)? else { return Ok(None) };
        let mut chosen = (format!("{first}/{}", entry.name), entry.name.clone());
        if entry.is_directory() && fastrand::u8(..4) > 0 {
            let Some((_, file)) = self.any_of(reader, &chosen.0)? else { return Ok(None) };
            from.push(id);
            chosen = (format!("{}/{}", chosen.0, file.name), file.name);
        }
        let mut target = second;
        let is_file = chosen.1.starts_with('f');
        if let Some((id, entry)) = self.any_of(reader, &target)?
            && is_file
            && entry.is_directory()
        {
            target = format!("{target}/{}", entry.name);
            to.push(id);
        }
        let (from_path, to_path) = (chosen.0, format!("{target}/{}", chosen.1));
        let (Some(source), Some(target)) = (from.last(), to.last()) else { return Ok(None) };
        if source == target {
            return Ok(None);
        }
        let changed = [*source, *target];
        from.extend(to);
        from.sort_unstable();
        from.dedup();
        Ok(Some(Move { from: from_path, to: to_path, directories: from, changed }))
    }

    fn directory(&self, reader: &impl Reader, path: &str) -> Result<u32> {
        let found = self.files.get(reader, path)?;
        found.map(|(id, _)| id).ok_or_else(|| keyloom::Error::other(format!("{path} is gone")))
    }

    fn any_of(
        &self,
        reader: &impl Reader,
        path: &str,
    ) -> Result<Option<(u32, keyloom_documents::files::FileEntry)>> {
        let mut items = self.files.list(reader, path, 1_000, None)?.items;
        Ok((!items.is_empty()).then(|| items.swap_remove(fastrand::usize(..items.len()))))
    }

    /// The faults of the check, and files that are missing, duplicated or have wrong contents.
    pub fn faults(&self) -> Result<Vec<String>> {
        let snapshot = self.store.snapshot()?;
        let mut faults: Vec<_> =
            self.files.check(&snapshot)?.iter().map(ToString::to_string).collect();
        faults.extend(self.locks.check(&snapshot)?.iter().map(ToString::to_string));
        let mut found = 0;
        for entry in self.files.walk(&snapshot, "/")? {
            let (path, _, entry) = entry?;
            if entry.is_directory() {
                continue;
            }
            found += 1;
            if self.files.read(&snapshot, &path)? != entry.name.as_bytes() {
                faults.push(format!("{path} has the contents of another file"));
            }
        }
        let expected = u32::from(TOPS) * SUBS * FILES;
        if found != expected {
            faults.push(format!("there are {found} files instead of {expected}"));
        }
        Ok(faults)
    }
}
