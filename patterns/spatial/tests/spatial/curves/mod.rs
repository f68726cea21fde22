//! The curves, compared with constructions bit by bit and cell by cell.

mod dimension;
mod morton;
mod next_inside;
mod ranges;
