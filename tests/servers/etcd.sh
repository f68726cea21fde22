#!/usr/bin/env bash
# Runs one member of an etcd cluster on loopback, in the foreground:
#
#     tests/servers/etcd.sh DIRECTORY INDEX CLIENT:PEER...
#
# There is one pair of ports per member, and INDEX says, counted from 0, which of them this one is.
# Becomes the server, so the process that was started is the member. A member that is started again
# with the same arguments has the data that it had. A majority must be up for the cluster to answer.
#
#     KEYLOOM_ETCD_OPTIONS    more options of `etcd`, as words
set -euo pipefail

(($# >= 3)) || { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
directory=$1
index=$2
members=("${@:3}")

command -v etcd >/dev/null || { echo 'etcd is not installed' >&2; exit 127; }

cluster=
for n in "${!members[@]}"; do
    cluster+=,member-$n=http://127.0.0.1:${members[n]#*:}
done
client=http://127.0.0.1:${members[index]%:*}
peer=http://127.0.0.1:${members[index]#*:}

mkdir -p "$directory"
# A dead leader is replaced within about a second. `pre-vote` keeps a member that the machine left
# waiting from deposing a leader that works.
# shellcheck disable=SC2086 # words are wanted
exec etcd --name="member-$index" --data-dir="$directory/member-$index" \
    --listen-client-urls="$client" --advertise-client-urls="$client" \
    --listen-peer-urls="$peer" --initial-advertise-peer-urls="$peer" \
    --initial-cluster="${cluster#,}" --initial-cluster-token="keyloom-${members[0]}" \
    --heartbeat-interval=100 --election-timeout=600 --pre-vote \
    --logger=zap --log-outputs=stderr --log-level=error ${KEYLOOM_ETCD_OPTIONS:-}
