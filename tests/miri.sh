#!/usr/bin/env bash
# Runs the tests of the core, without LMDB, in Miri, which sees every undefined behaviour that they meet:
#
#     tests/miri.sh [--result FILE]
#
# Miri comes with nightly toolchains only. Without it this says so and succeeds, unless KEYLOOM_REQUIRE_MIRI
# is 1; `tests/memory.sh` is what a stable toolchain can do.
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

if ! cargo miri --version >/dev/null 2>&1; then
    echo "Miri: skipped, as $(rustc --version) has none (rustup component add miri, on nightly)"
    [[ ${KEYLOOM_REQUIRE_MIRI:-} != 1 ]]
    exit
fi

sysroot=$(cargo miri setup --print-sysroot)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
caught=false
if ! miri --sysroot "$sysroot" tests/memory_safety/out_of_bounds.rs >"$log" 2>&1 &&
    grep -q 'error: Undefined Behavior' "$log"; then
    caught=true
fi

# Property tests and long loops would take hours; what they test is covered by the worked examples here.
export MIRIFLAGS=-Zmiri-disable-isolation
status=0
cargo miri test --package keyloom --no-default-features --lib -- \
    key::tests::examples key::tests::python key::tests::hostile::errors key::tests::subspaces::children \
    memory::entry memory::leaf 2>&1 | tee "$log" || status=$?
passed=$(sed -n 's/^test result: .* \([0-9]\+\) passed.*/\1/p' "$log")
if ((${passed:-0} == 0)); then
    echo 'Miri: no test ran: have they other names now?' >&2
    status=1
fi
write_result miri "${passed:-0}" tests "$((status != 0))" "\"out of bounds\": $caught" ''
echo "Miri: ${passed:-0} tests passed, status $status; control caught: $caught"
[[ $status == 0 && $caught == true ]]
