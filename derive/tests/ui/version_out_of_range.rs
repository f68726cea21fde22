use keyloom_patterns::Record;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(table = "tickets", key(id), version = 0)]
#[record(version = 251)]
struct Ticket {
    id: u64,
    #[index(version = 0)]
    status: u8,
}

fn main() {}
