//! The conceptual techniques of the catalogue.

pub mod denormalization;
pub mod joins;
