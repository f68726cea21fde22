use keyloom_patterns::Record;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(table = "tickets", key(id))]
struct Ticket {
    id: u64,
    #[index(each)]
    title: String,
    #[index(each)]
    parent: Option<u64>,
    #[index(each)]
    pair: (u8, u8),
}

fn main() {}
