//! The conceptual techniques of the catalogue.

pub mod aggregates;
pub mod denormalization;
pub mod joins;
