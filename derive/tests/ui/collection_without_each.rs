use keyloom_patterns::Record;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(table = "tickets", key(id), index(by_both = (id, pairs)))]
struct Ticket {
    id: u64,
    #[index]
    tags: Vec<String>,
    pairs: [u16; 2],
    #[index]
    hash: [u8; 32],
    #[index]
    bytes: Vec<u8>,
}

fn main() {}
