//! The curves, against constructions that go bit by bit and cell by cell.

mod dimension;
mod morton;
mod next_inside;
mod ranges;
