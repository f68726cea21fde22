//! The curves, compared with bitwise and cellwise constructions.

mod dimension;
mod morton;
mod next_inside;
mod ranges;
