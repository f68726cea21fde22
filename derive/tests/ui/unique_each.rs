use keyloom_patterns::Record;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(table = "tickets", key(id))]
struct Ticket {
    id: u64,
    #[unique(each)]
    tags: Vec<String>,
    #[index(each, unique, name = "other")]
    names: Vec<String>,
}

fn main() {}
