#!/usr/bin/env bash
# Runs a command beside a PostgreSQL server and an etcd cluster of three members:
#
#     tests/servers/with.sh COMMAND...
#     tests/servers/with.sh cargo test --workspace --all-features
#
# The command finds them by KEYLOOM_POSTGRES and KEYLOOM_ETCD. They listen on free ports of loopback,
# hold their data in a temporary directory, do not wait for the disk, and end when the command does,
# whose exit status this is. What they say is shown when they do not come up.
set -euo pipefail

(($#)) || { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
directory=$(mktemp --directory -t keyloom-servers.XXXXXX)
# The user `postgres` passes through.
chmod 711 "$directory"

# Every process below is started in a group of its own, to be ended together with what it has started.
set -m
servers=()
command=

start() { # LOG COMMAND...
    "${@:2}" >"$directory/$1.log" 2>&1 </dev/null &
    servers+=($!)
}

end() { # SIGNAL PID...
    local pid
    for pid in "${@:2}"; do kill "-$1" -- "-$pid" 2>/dev/null || true; done
    for pid in "${@:2}"; do wait "$pid" 2>/dev/null || true; done
}

finish() {
    trap '' INT TERM HUP
    [[ -z $command ]] || end TERM "$command"
    # For PostgreSQL, "immediately"; the data are thrown away.
    end QUIT "${servers[@]}"
    rm -rf "$directory"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Below the ports that the system gives to outgoing connections.
free_port() {
    local port
    while port=$((20000 + RANDOM % 12000)); do
        (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    echo "$port"
}

wait_until() { # LOG PID COMMAND...
    local deadline=$((SECONDS + 60))
    until "${@:3}"; do
        if ((SECONDS > deadline)) || ! kill -0 "$2" 2>/dev/null; then
            echo "$1 does not come up:" >&2
            tail --lines=20 "$directory/$1.log" >&2
            exit 1
        fi
        sleep 0.1
    done
}

is_healthy() { # PORT
    local answer
    answer=$(
        exec 3<>"/dev/tcp/127.0.0.1/$1"
        printf 'GET /health HTTP/1.0\r\n\r\n' >&3
        timeout 5 cat <&3
    ) 2>/dev/null && [[ $answer == *'"health":"true"'* ]]
}

postgres_port=$(free_port)
# Deadlocks are looked for early, so that no transaction waits for long in one.
KEYLOOM_PG_OPTIONS="-c fsync=off -c deadlock_timeout=100ms ${KEYLOOM_PG_OPTIONS:-}" \
    start postgres "$here/postgres.sh" "$directory/postgres" "$postgres_port"

members=()
for n in 0 1 2; do members+=("$(free_port):$(free_port)"); done
for n in 0 1 2; do
    KEYLOOM_ETCD_OPTIONS="--unsafe-no-fsync ${KEYLOOM_ETCD_OPTIONS:-}" \
        start "etcd-$n" "$here/etcd.sh" "$directory/etcd" "$n" "${members[@]}"
done

PATH=$PATH:$(printf '%s\n' /usr/lib/postgresql/*/bin | sort --version-sort | tail --lines=1)
wait_until postgres "${servers[0]}" pg_isready --quiet --host=127.0.0.1 --port="$postgres_port"
for n in 0 1 2; do wait_until "etcd-$n" "${servers[n + 1]}" is_healthy "${members[n]%:*}"; done

export KEYLOOM_POSTGRES=postgres://keyloom${KEYLOOM_PGPASSWORD:+:$KEYLOOM_PGPASSWORD}@127.0.0.1:$postgres_port/keyloom
printf -v addresses '127.0.0.1:%s,' "${members[@]%:*}"
export KEYLOOM_ETCD=etcd://${addresses%,}/keyloom

"$@" &
command=$!
status=0
wait "$command" || status=$?
command=
exit "$status"
