//! Prints the summary of a file of comparisons: `summary FILE`.

use std::process::ExitCode;

use keyloom_compare::rows;

fn main() -> ExitCode {
    let read = |path: String| {
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        rows::parse(&text).map_err(|error| format!("{path}, {error}"))
    };
    let rows =
        std::env::args().nth(1).ok_or_else(|| "usage: summary FILE".to_owned()).and_then(read);
    match rows {
        Ok(rows) => {
            print!("{}", rows::summary(&rows));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
