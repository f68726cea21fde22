#!/usr/bin/env bash
# Gives hostile bytes to every decoder and pattern, led by coverage (libFuzzer):
#
#     tests/fuzz/run.sh [--seconds N] [--jobs N] [--seed N] [--result FILE] [TARGET...]
#
# N seconds per target (60 without), all targets or those named, one after the other or N at a time. Works with a stable toolchain and a
# C++ compiler, with AddressSanitizer where the toolchain has it. What was found to be interesting is
# kept in the target directory and used the next time. First the controls, which are broken on purpose,
# must be found. The last line counts; the JSON in FILE says more. A crash shows the target, its input
# and a smaller one that crashes too, and the command that does it again.
set -euo pipefail

usage() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
invoked="$0 $*"
seconds=60
jobs=1
seed=$((RANDOM * 32768 + RANDOM + 1))
result=
targets=()
while (($#)); do
    case $1 in
        --seconds) seconds=${2:?}; shift 2 ;;
        --jobs) jobs=${2:?}; shift 2 ;;
        --seed) seed=${2:?}; shift 2 ;;
        --result) result=$(realpath -m "${2:?}"); shift 2 ;;
        -*) usage ;;
        *) targets+=("$1"); shift ;;
    esac
done
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
began=$SECONDS
. tests/result.sh

join() { # SEPARATOR WORD...
    printf '%s' "${2:-}"
    (($# < 3)) || printf -- "$1%s" "${@:3}"
}

# What libFuzzer needs to be led by; an address sanitizer is there for the unstable compiler only, which
# every compiler can be told to be.
host=$(rustc -vV | sed -n 's/^host: //p')
flags=(--cfg fuzzing -Cpasses=sancov-module)
for option in level=4 inline-8bit-counters pc-table trace-compares; do
    flags+=("-Cllvm-args=-sanitizer-coverage-$option")
done
sanitizer=none
if compgen -G "$(rustc --print target-libdir)/librustc-*_rt.asan.a" >/dev/null; then
    sanitizer=address
    export RUSTC_BOOTSTRAP=1
    flags+=(-Zsanitizer=address)
fi
# The parsers of addresses; etcd's client needs protoc to be built.
features=postgres
! command -v protoc >/dev/null || features+=,etcd

directory=${CARGO_TARGET_DIR:-target}/fuzz
mkdir -p "$directory"
directory=$(realpath "$directory")
# A target that is named keeps the flags away from build scripts.
CARGO_TARGET_DIR=$directory CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f'; echo "${flags[*]}") \
    cargo build --locked --profile fuzz --target "$host" --package keyloom-fuzz --features "$features"
fuzzer=$directory/$host/fuzz/keyloom-fuzz

mapfile -t all < <(ls tests/fuzz/corpus)
((${#targets[@]})) || targets=("${all[@]}")
for target in "${targets[@]}"; do
    [[ -d tests/fuzz/corpus/$target ]] || { echo "the targets: ${all[*]}" >&2; exit 2; }
done

# A memory leak is no defect of a process that ends; libFuzzer would look for them at every input.
export ASAN_OPTIONS=detect_leaks=0
fuzz() { # TARGET SECONDS LOG ARGUMENT...
    KEYLOOM_FUZZ_TARGET=$1 "$fuzzer" -max_total_time="$2" -seed="$seed" -timeout=20 \
        -rss_limit_mb=2048 -malloc_limit_mb=512 -print_final_stats=1 "${@:4}" 2>&1 | tee "$3" |
        sed --unbuffered -n "s/^#\([0-9]*\)\tpulse *cov: \([0-9]*\) .*/    $1: \1 executions so far, \2 edges/p"
}

controls=()
caught=true
for control in control_key_bytes control_ranges control_operations; do
    mkdir -p "$directory/controls"
    log=$directory/controls/$control.log
    from=$SECONDS
    found=false
    if fuzz "$control" 60 "$log" -artifact_prefix="$directory/controls/$control-" \
        "tests/fuzz/corpus/${control#control_}" 2>/dev/null || ! grep -q 'deadly signal' "$log"; then
        echo "$control, which is broken, was not found in 60 s" >&2
        caught=false
    else
        found=true
        echo "found, as it must be: $control in $((SECONDS - from)) s"
    fi
    controls+=("\"${control#control_}\": $found")
done

attack() { # TARGET
    local found=$directory/corpus/$1 crashes=$directory/crashes/$1 status=0
    mkdir -p "$found" "$crashes"
    fuzz "$1" "$seconds" "$directory/$1.log" -artifact_prefix="$crashes/" "$found" \
        "tests/fuzz/corpus/$1" || status=$?
    echo "$status" >"$directory/$1.status"
}
for target in "${targets[@]}"; do
    while (($(jobs -rp | wc --lines) >= jobs)); do wait -n; done
    attack "$target" &
done
wait

executions=0
crashed=()
interrupted=()
details=()
for target in "${targets[@]}"; do
    crashes=$directory/crashes/$target
    log=$directory/$target.log
    status=$(<"$directory/$target.status")
    count=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    coverage=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail --lines=1)
    echo "$target: ${count:-0} executions, ${coverage:-0} edges"
    executions=$((executions + ${count:-0}))
    details+=("\"$target\": ${count:-0}")
    ((status)) || continue
    if grep -q 'libFuzzer: run interrupted' "$log"; then
        echo "$target: somebody ended it before its time" >&2
        interrupted+=("$target")
        continue
    fi
    crashed+=("$target")
    grep -E "panicked at|ERROR: |^SUMMARY" -A 3 "$log" >&2 || tail --lines=20 "$log" >&2
    input=$(sed -n 's/.*Test unit written to //p' "$log" | tail --lines=1)
    [[ -n $input ]] || continue
    echo "$target: $input" >&2
    echo "again: cargo run --package keyloom-fuzz -- $target $input" >&2
    fuzz "$target" 60 "$crashes/minimize.log" -minimize_crash=1 \
        -exact_artifact_path="$input.min" "$input" || true
    [[ ! -e $input.min ]] || { echo "$target, smaller: $input.min" >&2; xxd "$input.min" >&2; }
done

write_result hostile-bytes "$executions" executions ${#crashed[@]} "$(join ', ' "${controls[@]}")" \
    "\"seconds per target\": $seconds, \"interrupted\": ${#interrupted[@]}, $(join ', ' "${details[@]}")"
echo "hostile bytes: ${#targets[@]} targets, $executions executions, ${#crashed[@]} crashes ${crashed[*]}, ${#interrupted[@]} interrupted; controls found: $caught; sanitizer: $sanitizer; seed $seed"
[[ $caught == true ]] && ((${#crashed[@]} + ${#interrupted[@]} == 0))
