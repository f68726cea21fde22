use keyloom_patterns::Record;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(table = "tickets", key(id), version = 2, from = Old, from_plain = Old)]
struct Ticket {
    id: u64,
}

fn main() {}
