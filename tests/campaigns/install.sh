#!/usr/bin/env bash
# Installs what the campaigns need beside Rust, on Debian and its descendants: strace.
command -v strace >/dev/null || $( ((EUID == 0)) || echo sudo) apt-get install --quiet --yes strace
