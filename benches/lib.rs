//! What each store and pattern of keyloom costs: `cargo bench -p keyloom-benches --bench index`.
//!
//! `benches/compare` measures them beside what people would use instead.
