#!/usr/bin/env bash
# What a stable toolchain can show of memory safety:
#
#     tests/memory.sh [--result FILE]
#
# * Every `unsafe` stands behind a comment that says why it is sound, those of the library in the LMDB
#   backend, and two that start and stop the thread of FoundationDB's client. They are listed.
# * AddressSanitizer, where the toolchain has its runtime: the unit tests and the laws of the stores,
#   on LMDB too.
# * Valgrind, where it is installed: the unit tests of the core, without LMDB. It sees reads of bytes that
#   were never written as well.
#
# Each checker must stop a program that reads behind an allocation, or this fails.
set -euo pipefail

invoked="$0 $*"
result=
if (($#)); then
    [[ $1 == --result && $# == 2 ]] || { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
    result=$(realpath -m "$2")
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."
began=$SECONDS
. tests/result.sh

directory=$(realpath -m "${CARGO_TARGET_DIR:-target}")/memory
mkdir -p "$directory"
host=$(rustc -vV | sed -n 's/^host: //p')
failures=0
controls=()
caught=true
tests=0

fail() {
    echo "$*" >&2
    failures=$((failures + 1))
}

passed_in() { # LOG
    sed -n 's/^test result: .* \([0-9]\+\) passed.*/\1/p' "$1" | awk '{ sum += $1 } END { print sum + 0 }'
}

count() { # CHECKER LOG
    local passed
    passed=$(passed_in "$2")
    ((passed)) || fail "$1: no test ran"
    tests=$((tests + passed))
}

control() { # CHECKER PATTERN COMMAND...
    if "${@:3}" >"$directory/control.log" 2>&1 || ! grep -q "$2" "$directory/control.log"; then
        echo "$1 does not notice a read behind an allocation" >&2
        caught=false
    else
        controls+=("$1")
    fi
}

# What the compiler takes on trust; not the word in comments and strings.
mapfile -t places < <(grep -rnE '^[^"/]*\bunsafe (\{|impl|trait|extern)' --include='*.rs' \
    src backends patterns tests benches examples book | sort -V)
for place in "${places[@]}"; do
    IFS=: read -r file line _ <<<"$place"
    why=$(head --lines="$line" "$file" | tail --lines=8 |
        awk '/SAFETY:/ { why = "" } /SAFETY:/,!/^ *\/\// { sub(/^ *\/\/ /, ""); if (!/unsafe|^ *let /) why = why " " $0 } END { print why }')
    echo "$file:$line:${why:- no reason is given}"
    [[ -n $why ]] || fail "$file:$line: unsafe without a reason"
    [[ $file == @(src/lmdb|backends/foundationdb|tests|benches|patterns/tests)/* ]] ||
        fail "$file:$line: unsafe in the library, outside of the backends of LMDB and FoundationDB"
done

checkers=()
if compgen -G "$(rustc --print target-libdir)/librustc-*_rt.asan.a" >/dev/null; then
    checkers+=(AddressSanitizer)
    # The compiler knows the sanitizers of its toolchain, and has to be told that it may use them.
    rustc=(env RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR="$directory")
    env RUSTC_BOOTSTRAP=1 rustc -Zsanitizer=address -o "$directory/control" tests/memory_safety/out_of_bounds.rs
    control AddressSanitizer heap-buffer-overflow "$directory/control"
    "${rustc[@]}" cargo test --locked --profile memory --target "$host" --package keyloom \
        --lib --test ranges --test memory --test conformance --test differential 2>&1 |
        tee "$directory/sanitizer.log" || fail 'AddressSanitizer: see above'
    count AddressSanitizer "$directory/sanitizer.log"
fi
if command -v valgrind >/dev/null; then
    checkers+=(Valgrind)
    rustc -o "$directory/control" tests/memory_safety/out_of_bounds.rs
    valgrind=(valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite)
    control Valgrind 'Invalid read' "${valgrind[@]}" "$directory/control"
    runner=CARGO_TARGET_$(tr '[:lower:]-' '[:upper:]_' <<<"$host")_RUNNER
    env CARGO_TARGET_DIR="$directory" "$runner=${valgrind[*]}" \
        cargo test --locked --profile memory --package keyloom --no-default-features --lib 2>&1 |
        tee "$directory/valgrind.log" || fail 'Valgrind: see above'
    count Valgrind "$directory/valgrind.log"
fi
((${#checkers[@]})) || fail 'there is neither AddressSanitizer nor Valgrind here'
[[ $caught == true ]] || failures=$((failures + 1))

write_result memory-safety "$tests" tests "$failures" "\"out of bounds\": $caught" \
    "\"checkers\": ${#checkers[@]}, \"unsafe\": ${#places[@]}"
echo "memory safety: $tests tests by ${checkers[*]:-nothing}, ${#places[@]} unsafe, $failures failures; controls caught by ${controls[*]:-none}"
((failures == 0))
