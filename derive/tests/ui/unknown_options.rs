use keyloom_patterns::Record;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(tabel = "tickets")]
#[record(table = "tickets", key(id))]
struct Ticket {
    id: u64,
    #[index(descending)]
    status: u8,
    #[unique(sparse)]
    name: String,
}

fn main() {}
