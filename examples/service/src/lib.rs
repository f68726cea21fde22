//! A help desk over HTTP: tickets with lists by customer, a full-text search, a search by distance,
//! and mails that are sent once, on any store of keyloom.
//!
//! | file | contents |
//! |---|---|
//! | `desk.rs` | the records, their indexes, and the transactions |
//! | `http.rs` | the routes |
//! | `load.rs` | a load generator that checks each answer against a model |
//! | `main.rs` | the program: options, start and shutdown |

pub mod desk;
pub mod http;
pub mod load;
