//! A field that serde does not write is another one after the next read.

use keyloom_patterns::Record;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(table = "tickets", key(id), index(by_town = (town, opened)))]
struct Ticket {
    #[serde(skip)]
    id: u64,
    #[serde(rename = "opened_at", skip_serializing)]
    opened: u64,
    #[serde(default)]
    town: String,
    #[unique]
    #[serde(default = "code", skip_deserializing)]
    code: String,
}

fn code() -> String {
    String::new()
}

fn main() {}
