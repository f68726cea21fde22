use keyloom_patterns::Record;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(table = "tickets")]
struct Ticket {
    id: u64,
}

fn main() {}
