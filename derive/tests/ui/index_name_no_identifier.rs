use keyloom_patterns::Record;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(table = "tickets", key(id))]
struct Ticket {
    id: u64,
    #[index(name = "by-status")]
    status: u8,
}

fn main() {}
