use keyloom_patterns::Key;

#[derive(Key)]
enum Status {
    #[key(5)]
    Open,
    #[key(2)]
    Closed,
}

fn main() {}
