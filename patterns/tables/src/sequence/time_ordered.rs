//! Ids that sort by creation time: UUIDs of version 7.

use std::ops::{Bound, RangeBounds};

use uuid::Builder;
pub use uuid::Uuid;

/// A new id: a UUID of version 7 (RFC 9562), which begins with the milliseconds since 1970.
///
/// The ids of one process are strictly ascending, even within a millisecond and when the clock is
/// set back. The ids of several processes are unique, but depend on their clocks, so a smaller id
/// may be committed after a larger one. So do not follow a container by reading all ids greater
/// than the last id seen.
///
/// An id takes 17 bytes in a key. A 64-bit number with a node id (Snowflake) would take 9, but the
/// nodes would need unique numbers. A ULID also has 128 bits, but another text form.
///
/// ```
/// use keyloom_tables::sequence::time_ordered_id;
/// let (first, second) = (time_ordered_id(), time_ordered_id());
/// assert!(first < second);
/// assert_eq!(first.get_version_num(), 7);
/// ```
#[cfg(feature = "time-ordered-ids")]
pub fn time_ordered_id() -> Uuid {
    Uuid::now_v7()
}

/// The last time that an id can hold.
const LAST_MS: u64 = (1 << 48) - 1;

/// The smallest id of a millisecond since 1970, to start a range at a date. Times after the year
/// 10889 are reduced to the last time that an id can hold.
pub fn first_id_at(time_ms: u64) -> Uuid {
    Builder::from_unix_timestamp_millis(time_ms.min(LAST_MS), &[0; 10]).into_uuid()
}

/// The millisecond since 1970 in which an id was created; `None` if it is not of version 7.
pub fn id_time_ms(id: &Uuid) -> Option<u64> {
    const BITS_BEHIND: u32 = 80;
    let time_ms = u64::try_from(id.as_u128() >> BITS_BEHIND).ok()?;
    (id.get_version_num() == 7).then_some(time_ms)
}

/// Converts a range of milliseconds to a range of ids.
///
/// ```
/// use keyloom_tables::sequence::{first_id_at, ids_between};
/// use std::ops::RangeBounds;
/// let day = ids_between(86_400_000..2 * 86_400_000);
/// assert!(day.contains(&first_id_at(100_000_000)));
/// assert!(!day.contains(&first_id_at(2 * 86_400_000)));
/// ```
pub fn ids_between(time_ms: impl RangeBounds<u64>) -> (Bound<Uuid>, Bound<Uuid>) {
    // No id comes after the last millisecond.
    let at = |ms: &u64| (*ms <= LAST_MS).then(|| first_id_at(*ms));
    let behind = |ms: &u64| at(&ms.saturating_add(1));
    let from = |id: Option<Uuid>| {
        let last = || Builder::from_unix_timestamp_millis(LAST_MS, &[0xFF; 10]).into_uuid();
        id.map_or_else(|| Bound::Excluded(last()), Bound::Included)
    };
    let to = |id: Option<Uuid>| id.map_or(Bound::Unbounded, Bound::Excluded);
    let start = match time_ms.start_bound() {
        Bound::Included(ms) => from(at(ms)),
        Bound::Excluded(ms) => from(behind(ms)),
        Bound::Unbounded => Bound::Unbounded,
    };
    let end = match time_ms.end_bound() {
        Bound::Included(ms) => to(behind(ms)),
        Bound::Excluded(ms) => to(at(ms)),
        Bound::Unbounded => Bound::Unbounded,
    };
    (start, end)
}
