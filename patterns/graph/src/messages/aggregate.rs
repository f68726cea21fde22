//! Aggregates: values that the vertices of a graph compute together.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value that all vertices contribute to in a superstep, and read in the next one.
///
/// `f64` values are summed, and `u64` values modulo 2<sup>64</sup>; `()` is empty. Pairs and maps
/// merge each of their parts, so a `BTreeMap<String, f64>` holds named sums.
///
/// ```
/// use keyloom_graph::messages::Aggregate;
/// let mut total = (2_u64, 0.5);
/// total.merge((1, 0.25));
/// assert_eq!(total, (3, 0.75));
/// ```
pub trait Aggregate: Serialize + DeserializeOwned + Clone + Default + Send + Sync {
    /// Adds a contribution. Contributions are merged in the order of the vertices.
    fn merge(&mut self, other: Self);
}

impl Aggregate for () {
    fn merge(&mut self, (): Self) {}
}

impl Aggregate for u64 {
    fn merge(&mut self, other: Self) {
        *self = self.wrapping_add(other);
    }
}

impl Aggregate for f64 {
    fn merge(&mut self, other: Self) {
        *self += other;
    }
}

impl<A: Aggregate, B: Aggregate> Aggregate for (A, B) {
    fn merge(&mut self, other: Self) {
        self.0.merge(other.0);
        self.1.merge(other.1);
    }
}

impl<K, A: Aggregate> Aggregate for BTreeMap<K, A>
where
    K: Serialize + DeserializeOwned + Ord + Clone + Send + Sync,
{
    fn merge(&mut self, other: Self) {
        for (name, value) in other {
            self.entry(name).or_default().merge(value);
        }
    }
}
