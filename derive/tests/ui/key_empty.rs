use keyloom_patterns::Key;

#[derive(Key)]
struct Id;

#[derive(Key)]
enum Never {}

fn main() {}
