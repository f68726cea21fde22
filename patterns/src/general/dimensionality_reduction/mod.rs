//! Dimensionality reduction: how do many dimensions stand on one ordered key, so that what is near stays
//! near?

pub mod curve;
