#!/usr/bin/env bash
# Stands for rustdoc in `cargo test --doc`: writes the documentation of the crate, where a warning
# is an error, and then runs its examples. `cargo doc` would check all dependencies once more.
set -euo pipefail

documented=()
is_test=
for ((n = 1; n <= $#; n++)); do
    case ${!n} in
    --test) is_test=1 ;;
    --test-args | --test-run-directory | --runtool | --runtool-arg) n=$((n + 1)) ;;
    *) documented+=("${!n}") ;;
    esac
done

# Cargo also calls it for its version.
if [[ $is_test ]]; then
    rustdoc "${documented[@]}" --out-dir "${CARGO_TARGET_DIR:-$(dirname "$0")/../target}/doc" -D warnings
fi
exec rustdoc "$@"
