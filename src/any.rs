//! A store that is chosen at run time.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use crate::backend::{ChangeListener, refused_address};
use crate::dynamic::{DynEntries, DynSnapshot, DynStore, DynTransaction};
use crate::memory::{MemoryEntries, MemorySnapshot, MemoryTransaction, Tracked};
use crate::{
    AtomicOp, Entry, EntryPage, KeyRange, Limits, Memory, Order, Reader, Result, RetryPolicy,
    Store, Transaction, TransactionState, VersionstampedKey, Writer,
};
#[cfg(feature = "lmdb")]
use crate::{
    Lmdb,
    lmdb::{LmdbEntries, LmdbSnapshot, LmdbTransaction},
};

/// A store that is chosen by an address.
///
/// | address | store | feature |
/// |---|---|---|
/// | `memory:` | [`Memory`], empty | |
/// | `lmdb:PATH` | `Lmdb` in the directory `PATH` | `lmdb` |
///
/// Each of the other backends is a crate of its own, which [`AnyStore::open_with`] adds:
///
/// | address | crate | argument of `open_with` |
/// |---|---|---|
/// | `redb:FILE` | `keyloom-redb` | `("redb", Redb::open_address)` |
/// | `fjall:PATH` | `keyloom-fjall` | `("fjall", Fjall::open_address)` |
/// | `postgres://user:password@host:port/database?table=name` | `keyloom-postgres` | `("postgres", Postgres::open_address)` |
/// | `etcd://host:port,host:port/name` | `keyloom-etcd` | `("etcd", Etcd::open_address)` |
/// | `fdb:CLUSTER_FILE?name=name` | `keyloom-foundationdb` | `("fdb", FoundationDb::open_address)` |
///
/// `AnyStore` is an enum: a read costs one more branch than on the backend itself. Reads in memory
/// and on LMDB copy nothing. A backend of another crate is a trait object ([`DynStore`]), whose
/// reads copy. To set options that an address cannot contain, open the backend with these options
/// and convert it with `AnyStore::from` or [`AnyStore::other`].
///
/// ```
/// use keyloom::{AnyStore, Reader, Store, Writer};
/// let store = AnyStore::open("memory:")?;
/// store.transact(|txn| txn.put(b"greeting", b"hello"))?;
/// assert_eq!(store.snapshot()?.get(b"greeting")?.as_deref(), Some(&b"hello"[..]));
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyStore {
    /// In memory.
    Memory(Memory),
    /// On LMDB.
    #[cfg(feature = "lmdb")]
    Lmdb(Lmdb),
    /// A store of another crate, made by [`AnyStore::other`].
    Other(DynStore),
}

/// A match over the backends: runs `$do` with the contents of the variant.
macro_rules! on {
    ($any:ident, $value:expr, $inner:ident => $do:expr) => {
        match $value {
            $any::Memory($inner) => $do,
            #[cfg(feature = "lmdb")]
            $any::Lmdb($inner) => $do,
            $any::Other($inner) => $do,
        }
    };
}

/// The error message for the address of a backend that is in another crate.
macro_rules! of_crate {
    ($name:literal) => {
        concat!(
            "this program was built without `",
            $name,
            "`: build it with that crate, and give its `open_address` to `AnyStore::open_with`"
        )
    };
}

impl AnyStore {
    /// Opens the store at `address`: `memory:` or `lmdb:PATH`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) if the address is not valid or
    /// names a backend of another crate; otherwise the errors of the backend. No error contains a
    /// password.
    pub fn open(address: &str) -> Result<Self> {
        let scheme = address.split_once(':').map(|(scheme, _)| scheme);
        let why = match (scheme, address) {
            (Some("memory"), "memory:") => return Ok(Memory::new().into()),
            (Some("lmdb"), _) => return lmdb(address),
            (Some("redb"), _) => of_crate!("keyloom-redb"),
            (Some("fjall"), _) => of_crate!("keyloom-fjall"),
            (Some("postgres" | "postgresql"), _) => of_crate!("keyloom-postgres"),
            (Some("etcd"), _) => of_crate!("keyloom-etcd"),
            (Some("fdb"), _) => of_crate!("keyloom-foundationdb"),
            _ => {
                "it is memory: or lmdb:PATH; for a backend of another crate, call `AnyStore::open_with`, or run a program that does"
            }
        };
        Err(refused_address(address, why))
    }

    /// Opens the store at `address`. `backends` adds backends of other crates. Each backend is a
    /// pair: a scheme, such as `redb`, and the function that opens addresses of this scheme. These
    /// backends take precedence over the built-in ones.
    ///
    /// ```
    /// use keyloom::{AnyStore, Memory, Result};
    /// fn scratch(address: &str) -> Result<AnyStore> {
    ///     Ok(AnyStore::other(address, Memory::new()))
    /// }
    /// let store = AnyStore::open_with("scratch:1", &[("scratch", scratch)])?;
    /// assert_eq!(store.to_string(), "scratch:1");
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`open`](AnyStore::open); or the error of the function that opens the address.
    pub fn open_with(address: &str, backends: &[(&str, fn(&str) -> Result<Self>)]) -> Result<Self> {
        let scheme = address.split_once(':').map(|(scheme, _)| scheme);
        let of = |scheme| backends.iter().find(|(name, _)| scheme == Some(*name));
        // PostgreSQL's tools accept the schemes `postgres` and `postgresql`, so the function for
        // `postgres` opens both.
        let also = scheme.filter(|scheme| *scheme == "postgresql").map(|_| "postgres");
        match of(scheme).or_else(|| of(also)) {
            Some((_, open)) => open(address),
            None => Self::open(address),
        }
    }

    /// A store of another crate. [`Display`](fmt::Display) shows `address`, so it must not contain
    /// a password.
    ///
    /// The reads of such a store copy keys and values to the heap. A program that cannot afford
    /// these copies should be generic over [`Store`] and use the backend itself.
    ///
    /// ```
    /// use keyloom::{AnyStore, Memory, Metered, Reader, Store, Writer};
    /// let store = AnyStore::other("metered:", Metered::new(Memory::new()));
    /// store.transact(|txn| txn.put(b"greeting", b"hello"))?;
    /// assert_eq!(store.snapshot()?.get(b"greeting")?.as_deref(), Some(&b"hello"[..]));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn other(address: &str, store: impl Store) -> Self {
        Self::Other(DynStore::new(address, store))
    }
}

#[cfg(feature = "lmdb")]
fn lmdb(address: &str) -> Result<AnyStore> {
    match address.strip_prefix("lmdb:") {
        None | Some("") => {
            Err(refused_address(address, "write the directory of the store after lmdb:"))
        }
        Some(path) => Ok(Lmdb::open(path)?.into()),
    }
}

#[cfg(not(feature = "lmdb"))]
fn lmdb(address: &str) -> Result<AnyStore> {
    Err(refused_address(address, "keyloom was built without the feature `lmdb`"))
}

impl Store for AnyStore {
    type Snapshot<'s> = AnySnapshot<'s>;
    type Transaction<'s> = AnyTransaction<'s>;

    fn snapshot(&self) -> Result<AnySnapshot<'_>> {
        on!(Self, self, store => Ok(AnySnapshot::from(store.snapshot()?)))
    }

    fn parallel_snapshots(&self, count: usize) -> Result<Vec<AnySnapshot<'_>>> {
        on!(Self, self, store => {
            let found = store.parallel_snapshots(count)?;
            Ok(found.into_iter().map(AnySnapshot::from).collect())
        })
    }

    fn begin(&self) -> Result<AnyTransaction<'_>> {
        on!(Self, self, store => Ok(AnyTransaction::from(store.begin()?)))
    }

    fn limits(&self) -> Limits {
        on!(Self, self, store => store.limits())
    }

    fn retry_policy(&self) -> RetryPolicy {
        on!(Self, self, store => store.retry_policy())
    }

    fn round_trips(&self) -> Option<u64> {
        on!(Self, self, store => store.round_trips())
    }

    fn wait_for_change(&self, key: &[u8], seen: Option<&[u8]>, timeout: Duration) -> Result<bool> {
        on!(Self, self, store => store.wait_for_change(key, seen, timeout))
    }

    fn listen(&self, key: &[u8]) -> ChangeListener {
        on!(Self, self, store => store.listen(key))
    }
}

/// A snapshot of an [`AnyStore`].
#[derive(Debug)]
#[non_exhaustive]
pub enum AnySnapshot<'s> {
    /// In memory.
    Memory(MemorySnapshot<'s>),
    /// On LMDB.
    #[cfg(feature = "lmdb")]
    Lmdb(LmdbSnapshot<'s>),
    /// On a backend of another crate.
    Other(DynSnapshot<'s>),
}

/// A transaction of an [`AnyStore`].
#[derive(Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant)] // Few transactions exist at a time, and they are not moved.
pub enum AnyTransaction<'s> {
    /// In memory.
    Memory(MemoryTransaction<'s>),
    /// On LMDB.
    #[cfg(feature = "lmdb")]
    Lmdb(LmdbTransaction<'s>),
    /// On a backend of another crate.
    Other(DynTransaction<'s>),
}

/// Bytes read from an [`AnyStore`]: borrowed from the engine where possible, otherwise owned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnyBytes<'r> {
    /// In memory and on LMDB.
    Borrowed(&'r [u8]),
    /// From a backend of another crate: a copy.
    Copied(Vec<u8>),
}

impl Deref for AnyBytes<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Copied(bytes) => bytes,
        }
    }
}

/// The entries of a range of an [`AnyStore`].
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyEntries<'r> {
    /// In memory.
    Memory(MemoryEntries<'r>),
    /// In memory, with tracking of the reads of a transaction.
    Tracked(Tracked<'r>),
    /// On LMDB.
    #[cfg(feature = "lmdb")]
    Lmdb(LmdbEntries<'r>),
    /// On a backend of another crate.
    Other(DynEntries<'r>),
}

macro_rules! from {
    ($($(#[$cfg:meta])* $any:ident$(<$a:lifetime>)? :: $variant:ident ($inner:ty),)+) => {
        $(
            $(#[$cfg])*
            impl<'a> From<$inner> for $any$(<$a>)? {
                #[inline]
                fn from(inner: $inner) -> Self {
                    Self::$variant(inner)
                }
            }
        )+
    };
}

from! {
    AnyStore::Memory(Memory),
    #[cfg(feature = "lmdb")]
    AnyStore::Lmdb(Lmdb),
    AnyStore::Other(DynStore),
    AnyBytes<'a>::Borrowed(&'a [u8]),
    AnyBytes<'a>::Copied(Vec<u8>),
    AnyEntries<'a>::Memory(MemoryEntries<'a>),
    AnyEntries<'a>::Tracked(Tracked<'a>),
    #[cfg(feature = "lmdb")]
    AnyEntries<'a>::Lmdb(LmdbEntries<'a>),
    AnyEntries<'a>::Other(DynEntries<'a>),
    AnySnapshot<'a>::Memory(MemorySnapshot<'a>),
    AnySnapshot<'a>::Other(DynSnapshot<'a>),
    AnyTransaction<'a>::Other(DynTransaction<'a>),
    #[cfg(feature = "lmdb")]
    AnySnapshot<'a>::Lmdb(LmdbSnapshot<'a>),
    AnyTransaction<'a>::Memory(MemoryTransaction<'a>),
    #[cfg(feature = "lmdb")]
    AnyTransaction<'a>::Lmdb(LmdbTransaction<'a>),
}

type AnyEntry<'r> = Entry<AnyBytes<'r>>;

fn entry<'r, B: Into<AnyBytes<'r>>>((key, value): Entry<B>) -> AnyEntry<'r> {
    (key.into(), value.into())
}

fn page<'r, B: Into<AnyBytes<'r>>>(
    EntryPage { entries, last }: EntryPage<B>,
) -> EntryPage<AnyBytes<'r>> {
    EntryPage { entries: entries.into_iter().map(entry).collect(), last }
}

impl<'r> Iterator for AnyEntries<'r> {
    type Item = Result<AnyEntry<'r>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let next = match self {
            Self::Tracked(entries) => return Some(entries.next()?.map(entry)),
            Self::Memory(entries) => entries.next()?.map(entry),
            #[cfg(feature = "lmdb")]
            Self::Lmdb(entries) => entries.next()?.map(entry),
            Self::Other(entries) => entries.next()?.map(entry),
        };
        Some(next)
    }
}

macro_rules! reads {
    ($any:ident) => {
        impl Reader for $any<'_> {
            type Bytes<'r>
                = AnyBytes<'r>
            where
                Self: 'r;
            type Entries<'r>
                = AnyEntries<'r>
            where
                Self: 'r;

            #[inline]
            fn get(&self, key: &[u8]) -> Result<Option<AnyBytes<'_>>> {
                on!(Self, self, reader => Ok(reader.get(key)?.map(AnyBytes::from)))
            }

            fn range(&self, range: KeyRange<'_>, order: Order) -> Result<AnyEntries<'_>> {
                on!(Self, self, reader => Ok(AnyEntries::from(reader.range(range, order)?)))
            }

            fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<AnyBytes<'_>>>> {
                on!(Self, self, reader => {
                    let values = reader.get_many(keys)?.into_iter();
                    Ok(values.map(|value| value.map(AnyBytes::from)).collect())
                })
            }

            fn prefetched(&self) -> usize {
                on!(Self, self, reader => reader.prefetched())
            }

            fn prefetch(&self, keys: &[&[u8]]) -> Result<()> {
                on!(Self, self, reader => reader.prefetch(keys))
            }

            fn count(&self, range: KeyRange<'_>) -> Result<u64> {
                on!(Self, self, reader => reader.count(range))
            }

            fn first(&self, range: KeyRange<'_>) -> Result<Option<AnyEntry<'_>>> {
                on!(Self, self, reader => Ok(reader.first(range)?.map(entry)))
            }

            fn last(&self, range: KeyRange<'_>) -> Result<Option<AnyEntry<'_>>> {
                on!(Self, self, reader => Ok(reader.last(range)?.map(entry)))
            }

            fn page(
                &self,
                range: KeyRange<'_>,
                order: Order,
                limit: usize,
            ) -> Result<EntryPage<AnyBytes<'_>>> {
                on!(Self, self, reader => Ok(page(reader.page(range, order, limit)?)))
            }

            fn range_many(
                &self,
                ranges: &[KeyRange<'_>],
                limit: usize,
            ) -> Result<Vec<EntryPage<AnyBytes<'_>>>> {
                on!(Self, self, reader => {
                    Ok(reader.range_many(ranges, limit)?.into_iter().map(page).collect())
                })
            }
        }
    };
}

reads!(AnySnapshot);
reads!(AnyTransaction);

impl Writer for AnyTransaction<'_> {
    fn check_reads(&self, is_checked: bool) -> bool {
        on!(AnyTransaction, self, txn => txn.check_reads(is_checked))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        on!(Self, self, txn => txn.put(key, value))
    }

    fn put_sorted(&mut self, entries: &[(&[u8], &[u8])]) -> Result<()> {
        on!(Self, self, txn => txn.put_sorted(entries))
    }

    fn state(&mut self) -> &mut TransactionState {
        on!(Self, self, txn => txn.state())
    }

    fn limits(&self) -> Limits {
        on!(Self, self, txn => txn.limits())
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        on!(Self, self, txn => txn.delete(key))
    }

    fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()> {
        on!(Self, self, txn => txn.delete_range(range))
    }

    fn apply(&mut self, key: &[u8], operation: AtomicOp<'_>) -> Result<()> {
        on!(Self, self, txn => txn.apply(key, operation))
    }

    fn put_versionstamped(&mut self, key: &VersionstampedKey<'_>, value: &[u8]) -> Result<()> {
        on!(Self, self, txn => txn.put_versionstamped(key, value))
    }
}

impl Transaction for AnyTransaction<'_> {
    fn commit(self) -> Result<()> {
        on!(Self, self, txn => txn.commit())
    }

    fn must_restart(&self) -> bool {
        on!(Self, self, txn => txn.must_restart())
    }
}

impl fmt::Display for AnyStore {
    /// The address of the store, without a password: `lmdb:/var/lib/cities`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(_) => f.write_str("memory:"),
            #[cfg(feature = "lmdb")]
            Self::Lmdb(store) => write!(f, "lmdb:{}", store.path().display()),
            Self::Other(store) => f.write_str(store.address()),
        }
    }
}
