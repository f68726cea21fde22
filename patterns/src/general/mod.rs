//! The general techniques of the catalogue.

pub mod aggregation;
pub mod atomic_aggregates;
pub mod composite_key_index;
pub mod dimensionality_reduction;
pub mod enumerable_keys;
pub mod index_without_transactions;
pub mod inverted_index;
