//! Runs the targets: on files, or on the inputs of libFuzzer if built for it.
#![cfg_attr(fuzzing, no_main)]
#![cfg_attr(fuzzing, allow(unsafe_code))] // The expansion of the macro of libFuzzer's crate.

use keyloom_fuzz::Target;

/// One program contains all targets, so that it is built once; the environment selects one.
#[cfg(fuzzing)]
static CHOSEN: std::sync::LazyLock<Target> = std::sync::LazyLock::new(|| {
    let name = std::env::var("KEYLOOM_FUZZ_TARGET").unwrap_or_default();
    keyloom_fuzz::target(&name).unwrap_or_else(|| {
        eprintln!("KEYLOOM_FUZZ_TARGET={name:?} names no target");
        std::process::exit(2)
    })
});

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| (CHOSEN.run)(data));

#[cfg(not(fuzzing))]
fn main() -> std::process::ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(Target { name, run }) = arguments.next().and_then(|name| keyloom_fuzz::target(&name))
    else {
        eprintln!(
            "usage: keyloom-fuzz TARGET FILE...\n\nThe targets, and what is broken on purpose:"
        );
        for target in keyloom_fuzz::TARGETS.iter().chain(&keyloom_fuzz::CONTROLS) {
            eprintln!("    {}", target.name);
        }
        return std::process::ExitCode::from(2);
    };
    for file in arguments {
        match std::fs::read(&file) {
            Ok(bytes) => run(&bytes),
            Err(error) => {
                eprintln!("{file}: {error}");
                return std::process::ExitCode::FAILURE;
            }
        }
        println!("{name}: {file} is survived");
    }
    std::process::ExitCode::SUCCESS
}
