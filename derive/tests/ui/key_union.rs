use keyloom_patterns::Key;

#[derive(Key)]
union Id {
    number: u64,
}

fn main() {}
