#!/usr/bin/env bash
# Stands for rustdoc in `cargo test --doc`: writes the documentation of the crate, where a warning
# is an error, and then runs its examples. `cargo doc` would check all dependencies once more.
#
# With KEYLOOM_DOCUMENTED it does so for the crate of this name only. `cargo test --doc -p` would
# choose other features than the workspace, and build all dependencies once more: 145 s.
set -euo pipefail

documented=()
is_test=
crate=
for ((n = 1; n <= $#; n++)); do
    case ${!n} in
    --test) is_test=1 ;;
    --crate-name)
        n=$((n + 1))
        crate=${!n}
        documented+=(--crate-name "$crate")
        ;;
    --test-args | --test-run-directory | --runtool | --runtool-arg) n=$((n + 1)) ;;
    *) documented+=("${!n}") ;;
    esac
done

# Cargo also calls it for its version.
if [[ $is_test ]]; then
    [[ $crate == "${KEYLOOM_DOCUMENTED:-$crate}" ]] || exit 0
    rustdoc "${documented[@]}" --out-dir "${CARGO_TARGET_DIR:-$(dirname "$0")/../target}/doc" -D warnings
fi
exec rustdoc "$@"
