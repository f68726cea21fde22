#!/usr/bin/env bash
# Shows, without keyloom, that PostgreSQL's SERIALIZABLE lets a cycle through when one of its
# transactions stays open while some thousand others commit:
#
#     tests/servers/with.sh tests/on_servers/tests/postgres/forgotten_conflict.sh
#
# The long transaction looks for key A, which is absent. T1 puts A. T2 sees A, and reads key B. Then the
# long one writes B. T1 comes before T2, which saw A; T2 before the long one, whose B it did not see; and the
# long one before T1, whose A it did not see: there is no such order, so the long one must be refused. It is, as
# long as few others have committed meanwhile. PostgreSQL remembers about ten times max_connections
# transactions one by one, and a summary of those before.
set -euo pipefail

(($# == 0)) || { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
PATH=$PATH:$(printf '%s\n' /usr/lib/postgresql/*/bin | sort --version-sort | tail --lines=1)
run=(psql -qAt -v ON_ERROR_STOP=0 "$KEYLOOM_POSTGRES")
serializable='SET enable_seqscan = off; SET enable_bitmapscan = off; BEGIN ISOLATION LEVEL SERIALIZABLE'
directory=$(mktemp --directory)
trap 'rm -rf "$directory"' EXIT

"${run[@]}" -c 'CREATE TABLE forgotten (key int PRIMARY KEY, value text NOT NULL)' \
    -c "INSERT INTO forgotten SELECT n, '' FROM generate_series(1, 100000) n" -c 'VACUUM ANALYZE forgotten'
cat >"$directory/others.sql" <<'SQL'
\set key random(10000, 90000)
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT value FROM forgotten WHERE key = :key;
UPDATE forgotten SET value = 'x' WHERE key = :key;
COMMIT;
SQL

for others in 0 400 4000; do
    "${run[@]}" -c 'DELETE FROM forgotten WHERE key = 200000' -c "UPDATE forgotten SET value = '' WHERE key = 5"
    mkfifo "$directory/long"
    "${run[@]}" <"$directory/long" >"$directory/said" 2>&1 &
    exec 7>"$directory/long"
    echo "$serializable; SELECT 'the long one finds ' || count(*) FROM forgotten WHERE key = 200000;" >&7
    until grep -q finds "$directory/said"; do sleep 0.1; done
    "${run[@]}" -c "$serializable; INSERT INTO forgotten VALUES (200000, 'A'); COMMIT"
    "${run[@]}" -c "$serializable; SELECT 'T2 sees ' || value FROM forgotten WHERE key = 200000;
                    SELECT 'T2 reads B = (' || value || ')' FROM forgotten WHERE key = 5; COMMIT"
    ((others == 0)) || pgbench -n -f "$directory/others.sql" -c 4 -t $((others / 4)) "$KEYLOOM_POSTGRES" >/dev/null 2>&1
    echo "UPDATE forgotten SET value = 'long' WHERE key = 5; COMMIT;" >&7
    exec 7>&-
    wait
    cat "$directory/said"
    if grep -q 'could not serialize' "$directory/said"; then
        echo "== $others others in between: the long one is refused, as it must be"
    else
        echo "== $others others in between: THE LONG ONE IS COMMITTED"
    fi
    rm "$directory/long"
done
"${run[@]}" -c 'DROP TABLE forgotten'
