use keyloom_patterns::Record;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(table = "tickets", key(id), table = "ticket")]
struct Ticket {
    id: u64,
    #[unique(unique)]
    status: u8,
}

fn main() {}
