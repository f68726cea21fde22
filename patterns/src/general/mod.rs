//! The general techniques of the catalogue.

pub mod composite_key_index;
pub mod index_without_transactions;
