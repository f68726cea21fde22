use keyloom_patterns::Key;

#[derive(Key)]
#[key(name = "id")]
struct Id {
    #[key(0)]
    number: u64,
}

fn main() {}
