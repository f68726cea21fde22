#!/usr/bin/env bash
# Changes the encoding of keys and the range algebra in every small way, and asks whether a test notices:
#
#     tests/mutants.sh [--in-diff REV] [--jobs N] [--result FILE]
#
# With REV only what has changed since. N of them at a time, as many as there are processors without.
# Installs cargo-mutants into the target directory where it is missing. Works on a copy of these modules
# and their tests that is a crate by itself, which is built in a second or two. `.cargo/mutants.toml`
# names the files, and the changes that change nothing. Fails when one goes unnoticed, and when none does
# with the test that is there for it left out.
set -euo pipefail

usage() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
invoked="$0 $*"
revision=
jobs=$(nproc)
result=
while (($#)); do
    case $1 in
        --in-diff) revision=${2:?}; shift 2 ;;
        --jobs) jobs=${2:?}; shift 2 ;;
        --result) result=$(realpath -m "${2:?}"); shift 2 ;;
        *) usage ;;
    esac
done
cd "$(dirname "${BASH_SOURCE[0]}")/.."
began=$SECONDS
. tests/result.sh

directory=$(realpath -m "${CARGO_TARGET_DIR:-target}")
if [[ -n $revision ]] && git diff --quiet "$revision" -- src/key src/range.rs ':!src/key/tests'; then
    echo "mutation: nothing has changed since $revision"
    exit
fi
export PATH=$directory/tools/bin:$PATH
command -v cargo-mutants >/dev/null || cargo install cargo-mutants --locked --root "$directory/tools"
crate=$directory/mutants/crate
# Each job builds in a directory of its own.
unset CARGO_TARGET_DIR
# A test that fails need not say it with the smallest input.
export PROPTEST_MAX_SHRINK_ITERS=0 RUST_BACKTRACE=0

rm -rf "$crate"
mkdir -p "$crate/src" "$crate/tests"
cp -r .cargo Cargo.lock "$crate"
cp tests/mutants/crate.toml "$crate/Cargo.toml"
cp -r src/key src/range.rs tests/mutants/lib.rs "$crate/src"
cp tests/ranges.rs "$crate/tests"

mutate() { # OUTPUT ARGUMENT...
    rm -rf "$directory/mutants/$1"
    mkdir -p "$directory/mutants/$1"
    cargo mutants --dir "$crate" --jobs "$jobs" --no-shuffle --output "$directory/mutants/$1" "${@:2}"
}

count() { # DIRECTORY KIND
    { cat "$directory/mutants/$1/mutants.out/$2.txt" 2>/dev/null || true; } | wc --lines
}

# The offset that an error inside a descending element shows is the matter of one test alone.
lonely=error_offset_in_a_descending_element_counts_bytes_of_the_key
mutate control --re complemented_len -- -- "--skip=$lonely" >/dev/null || true
unnoticed=$(count control missed)
echo "without the test $lonely, $unnoticed mutants are missed"

only=()
if [[ -n $revision ]]; then
    git diff "$revision" -- src/key src/range.rs >"$directory/mutants/diff"
    only=(--in-diff "$directory/mutants/diff")
fi
status=0
mutate found "${only[@]}" || status=$?
# 2 and 3 say that mutants were missed or ran out of time; others that it did not work at all.
((status == 0 || status == 2 || status == 3)) || exit "$status"

caught=$(count found caught)
missed=$(count found missed)
timeouts=$(count found timeout)
unviable=$(count found unviable)
total=$((caught + missed + timeouts + unviable))
((unnoticed > 0)) && noticed=true || noticed=false
write_result mutation "$total" mutants "$missed" "\"a test left out\": $noticed" \
    "\"caught\": $caught, \"missed\": $missed, \"timeouts\": $timeouts, \"unviable\": $unviable, \"missed_in_control\": $unnoticed"
echo "mutation: of $((total - unviable)) changes that compile $missed were missed, $timeouts ran out of time; $unviable do not compile; control: $unnoticed missed, as they must be"
echo "left out, as they change nothing:"
sed -n '/^exclude_re/,/^]/{/^ /p}' .cargo/mutants.toml
((missed == 0 && unnoticed > 0))
