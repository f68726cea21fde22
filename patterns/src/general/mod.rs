//! The general techniques of the catalogue.

pub mod aggregation;
pub mod composite_key_index;
pub mod index_table;
