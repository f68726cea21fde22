#!/usr/bin/env bash
# Installs what the campaigns need, on Debian and its descendants:
#
#     tests/campaigns/install.sh
#
# strace writes down what LMDB asks of its file, Valgrind watches memory. Does nothing where they are there
# already. Needs root, or sudo.
set -euo pipefail

if command -v strace >/dev/null && command -v valgrind >/dev/null; then
    exit 0
fi

as_root=()
((EUID == 0)) || as_root=(sudo)

"${as_root[@]}" apt-get update --quiet
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install --quiet --yes --no-install-recommends strace valgrind libc6-dbg
