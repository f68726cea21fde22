use keyloom_patterns::Record;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
struct Ticket {
    id: u64,
}

fn main() {}
