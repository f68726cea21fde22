use keyloom_patterns::Record;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(key(id))]
struct Ticket {
    id: u64,
}

fn main() {}
