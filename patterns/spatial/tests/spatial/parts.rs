//! The leading parts of grouped indexes.

use proptest::prelude::*;

/// A tenant and a category.
pub type Parts = (Vec<u8>, u64);

/// Tenants that are prefixes and suffixes of each other, also in their packed form.
const TENANTS: [&[u8]; 9] =
    [b"", b"a", b"a\0", b"\0", b"\0a", b"\xFF", b"\xFF\xFF", b"a\xFF", b"\0\xFF"];
const CATEGORIES: [u64; 5] = [0, 1, 255, 256, u64::MAX];

pub fn all_groups() -> impl Iterator<Item = Parts> {
    let of = |tenant: &[u8]| CATEGORIES.map(|category| (tenant.to_vec(), category));
    TENANTS.into_iter().flat_map(of)
}

/// The groups of a record. Most records are in one of two, so that these have several.
pub fn groups() -> impl Strategy<Value = Vec<Parts>> {
    let any = prop::sample::select(all_groups().collect::<Vec<_>>());
    let common = prop::sample::select(vec![(b"a".to_vec(), 0), (b"a\0".to_vec(), 0)]);
    prop::collection::vec(prop_oneof![common, any], 0..4)
}
