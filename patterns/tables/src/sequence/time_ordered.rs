//! Ids that sort by the time at which they were made: UUIDs of version 7.

use std::ops::{Bound, RangeBounds};

use uuid::Builder;
pub use uuid::Uuid;

/// A new id: a UUID of version 7 (RFC 9562), which begins with the milliseconds since 1970.
///
/// The ids of one process ascend strictly, also within a millisecond and when the clock is set
/// back. Those of several processes are unique, and in the order of their clocks: an id may appear
/// after another that is larger. So do not follow a container by "what is larger than the last id
/// that I have seen".
///
/// It takes 17 bytes in a key. As a number of 64 bits with a node in it (Snowflake) it would take
/// 9, but somebody would have to number the nodes; a ULID has the same 128 bits and its own
/// alphabet.
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

/// The smallest id of a millisecond since 1970, to walk from a date. Times behind the year 10889
/// count as the last one that an id holds.
pub fn first_id_at(time_ms: u64) -> Uuid {
    const LAST_MS: u64 = (1 << 48) - 1;
    Builder::from_unix_timestamp_millis(time_ms.min(LAST_MS), &[0; 10]).into_uuid()
}

/// The millisecond since 1970 at which an id was made; `None` when it is not of version 7.
pub fn id_time_ms(id: &Uuid) -> Option<u64> {
    const BITS_BEHIND: u32 = 80;
    let time_ms = u64::try_from(id.as_u128() >> BITS_BEHIND).ok()?;
    (id.get_version_num() == 7).then_some(time_ms)
}

/// The ids of a range of milliseconds, as a range of ids.
///
/// ```
/// use keyloom_tables::sequence::{first_id_at, ids_between};
/// use std::ops::RangeBounds;
/// let day = ids_between(86_400_000..2 * 86_400_000);
/// assert!(day.contains(&first_id_at(100_000_000)));
/// assert!(!day.contains(&first_id_at(2 * 86_400_000)));
/// ```
pub fn ids_between(time_ms: impl RangeBounds<u64>) -> (Bound<Uuid>, Bound<Uuid>) {
    let behind = |ms: &u64| first_id_at(ms.saturating_add(1));
    let start = match time_ms.start_bound() {
        Bound::Included(ms) => Bound::Included(first_id_at(*ms)),
        Bound::Excluded(ms) => Bound::Included(behind(ms)),
        Bound::Unbounded => Bound::Unbounded,
    };
    let end = match time_ms.end_bound() {
        Bound::Included(ms) => Bound::Excluded(behind(ms)),
        Bound::Excluded(ms) => Bound::Excluded(first_id_at(*ms)),
        Bound::Unbounded => Bound::Unbounded,
    };
    (start, end)
}
