//! Space-filling curves.

mod morton;
mod next_inside;
mod word;

pub use morton::Morton;
