//! The leading parts of grouped indexes.

use keyloom_testing::ids::BYTES;
use proptest::prelude::*;

/// A tenant and a category.
pub type Parts = (Vec<u8>, u64);

const CATEGORIES: [u64; 5] = [0, 1, 255, 256, u64::MAX];

pub fn all_groups() -> impl Iterator<Item = Parts> {
    let of = |tenant: &[u8]| CATEGORIES.map(|category| (tenant.to_vec(), category));
    BYTES.into_iter().flat_map(of)
}

/// The groups of a record. Most groups are one of two, so that these two have several records.
pub fn groups() -> impl Strategy<Value = Vec<Parts>> {
    let any = prop::sample::select(all_groups().collect::<Vec<_>>());
    let common = prop::sample::select(vec![(b"a".to_vec(), 0), (b"a\0".to_vec(), 0)]);
    prop::collection::vec(prop_oneof![common, any], 0..4)
}
