#!/usr/bin/env bash
# Runs a PostgreSQL server on loopback, in the foreground:
#
#     tests/servers/postgres.sh DIRECTORY PORT
#
# Makes a database cluster in DIRECTORY if there is none: UTF-8, bytewise order, an ordinary user
# `keyloom` who owns a database `keyloom`, and the superuser `postgres`. Then becomes the server, so
# the process that was started is the postmaster. Root becomes the user `postgres` first, who must
# be able to reach DIRECTORY.
#
#     KEYLOOM_PGPASSWORD                     both users need this password (SCRAM); without, nobody does
#     KEYLOOM_PG_TLS_CERT, KEYLOOM_PG_TLS_KEY  PEM files: the server speaks TLS too
#     KEYLOOM_PG_OPTIONS                     more options of `postgres`, as words
set -euo pipefail

(($# == 2)) || { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
directory=$1
port=$2

# Debian keeps the server's programs out of the path.
newest=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort --version-sort | tail --lines=1)
PATH=$PATH:$newest
command -v initdb postgres >/dev/null || { echo 'PostgreSQL is not installed' >&2; exit 127; }

mkdir -p "$directory"
as_user=()
if ((EUID == 0)); then
    chown postgres: "$directory"
    # `setpriv` becomes the program that it runs; `su` and `runuser` would stay in front of it.
    as_user=(setpriv --reuid=postgres --regid=postgres --init-groups)
fi
cd "$directory"
export LC_ALL=C

data=$directory/data
if [[ ! -e $data ]]; then
    rm -rf "$data.new"
    auth=trust
    password=
    if [[ -n ${KEYLOOM_PGPASSWORD:-} ]]; then
        auth=scram-sha-256
        password="PASSWORD '${KEYLOOM_PGPASSWORD//\'/\'\'}'"
    fi
    "${as_user[@]}" initdb --pgdata="$data.new" --username=postgres --encoding=UTF8 --locale=C \
        --auth=trust --no-sync >/dev/null
    # One command per line. Without a server nobody is asked for a password.
    printf '%s\n' \
        "ALTER ROLE postgres $password" \
        "CREATE ROLE keyloom LOGIN $password" \
        'CREATE DATABASE keyloom OWNER keyloom' |
        "${as_user[@]}" postgres --single -D "$data.new" postgres >/dev/null
    echo "host all all 127.0.0.1/32 $auth" >"$data.new/pg_hba.conf"
    # Only now is it a cluster: what was stopped half way is made again.
    mv "$data.new" "$data"
fi

tls=()
if [[ -n ${KEYLOOM_PG_TLS_CERT:-} ]]; then
    # The server refuses a key that others may read.
    owner=()
    ((EUID == 0)) && owner=(--owner=postgres)
    install --mode=600 "${owner[@]}" "$KEYLOOM_PG_TLS_CERT" "$data/server.crt"
    install --mode=600 "${owner[@]}" "$KEYLOOM_PG_TLS_KEY" "$data/server.key"
    tls=(-c ssl=on)
fi

# Shared memory in files of the directory goes when the directory does.
# shellcheck disable=SC2086 # words are wanted
exec "${as_user[@]}" postgres -D "$data" -p "$port" -c listen_addresses=127.0.0.1 \
    -c unix_socket_directories= -c max_connections=100 -c shared_buffers=32MB \
    -c dynamic_shared_memory_type=mmap "${tls[@]}" ${KEYLOOM_PG_OPTIONS:-}
