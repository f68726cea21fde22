#!/usr/bin/env bash
# Opens every page of the book in headless Chromium, at three widths, in light and dark, and looks for
# what a reader would stumble over:
#
#     tests/browser/run.sh [--screenshots DIRECTORY]
#
# Cut code, pages that scroll sideways, unreadable pictures, dead links, pictures without a text, keys
# that do nothing, and words of newcomers whose search does not find the right chapter. A page with
# one mistake of each kind is opened too: the run fails if a mistake is not found there.
#
# Installs mdbook and puppeteer-core into the target directory where they are missing. Needs Debian's
# packages chromium, nodejs and npm, which it installs if it may.
set -euo pipefail

usage() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
screenshots=
while (($#)); do
    case $1 in
        --screenshots) screenshots=$(realpath -m "${2:?}"); shift 2 ;;
        *) usage ;;
    esac
done
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
command -v mdbook >/dev/null || cargo install mdbook --locked --root "$tools"
# The core package alone: the full one downloads a browser of its own.
# The last version that runs on the Node.js of Debian 12.
puppeteer=23.11.1
if [[ ! -d $tools/browser/node_modules/puppeteer-core ]]; then
    npm install --no-save --no-audit --no-fund --prefix "$tools/browser" "puppeteer-core@$puppeteer"
fi

book=$(mktemp -d)
trap 'rm -rf "$book"' EXIT
mdbook build book --dest-dir "$book"
TOOLS=$tools/browser CHROMIUM=$(command -v chromium) \
    SCREENSHOTS=$screenshots node tests/browser/book.mjs "$book"
