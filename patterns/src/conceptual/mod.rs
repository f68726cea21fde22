//! The conceptual techniques of the catalogue.

pub mod aggregates;
