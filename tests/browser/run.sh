#!/usr/bin/env bash
# Opens in headless Chromium what a person sees, at three widths, in light and dark, and looks for what
# they would stumble over:
#
#     tests/browser/run.sh [--screenshots DIRECTORY] [book] [explorer]
#
# book: every page of the book. Cut code, pages that scroll sideways, unreadable pictures, dead links,
# pictures without a text, keys that do nothing, and words of newcomers whose search does not find the
# right chapter.
# explorer: the views of `keyloom explore` on a store that the tour has filled, by clicks. What they
# show is compared with the command, and hostile content must not be executed.
#
# Both, if none is named. Each has mistakes planted that it must find, or the run fails.
#
# Installs mdbook and puppeteer-core into the target directory where they are missing. Needs Debian's
# packages chromium, nodejs and npm, which it installs if it may.
set -euo pipefail

usage() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
screenshots=
parts=()
while (($#)); do
    case $1 in
        --screenshots) screenshots=$(realpath -m "${2:?}"); shift 2 ;;
        book | explorer) parts+=("$1"); shift ;;
        *) usage ;;
    esac
done
((${#parts[@]})) || parts=(book explorer)
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

tools=$(realpath -m "${CARGO_TARGET_DIR:-target}")/tools
export PATH=$tools/bin:$PATH

missing=()
command -v chromium >/dev/null || missing+=(chromium)
command -v node >/dev/null || missing+=(nodejs)
command -v npm >/dev/null || missing+=(npm)
if ((${#missing[@]})); then
    as_root=()
    ((EUID == 0)) || as_root=(sudo)
    "${as_root[@]}" apt-get update --quiet
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install --quiet --yes --no-install-recommends "${missing[@]}"
fi
# The last version that runs on the Node.js of Debian 12. The core package alone: the full one
# downloads a browser of its own.
puppeteer=23.11.1
if [[ ! -d $tools/browser/node_modules/puppeteer-core ]]; then
    npm install --no-save --no-audit --no-fund --prefix "$tools/browser" "puppeteer-core@$puppeteer"
fi
export TOOLS=$tools/browser SCREENSHOTS=$screenshots
CHROMIUM=$(command -v chromium)
export CHROMIUM
[[ -z $screenshots ]] || mkdir -p "$screenshots"

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

run_book() {
    command -v mdbook >/dev/null || cargo install mdbook --locked --root "$tools"
    mdbook build book --dest-dir "$directory/book"
    node tests/browser/book.mjs "$directory/book"
}

run_explorer() {
    local keyloom
    cargo run --locked --release -p keyloom-tour -- --store "lmdb:$directory/store" >/dev/null
    cargo build --locked -p keyloom-cli
    keyloom=$(realpath -m "${CARGO_TARGET_DIR:-target}")/debug/keyloom
    node tests/browser/explorer.mjs "$keyloom" "lmdb:$directory/store"
}

status=0
for part in "${parts[@]}"; do
    "run_$part" || status=1
done
exit "$status"
