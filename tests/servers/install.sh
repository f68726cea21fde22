#!/usr/bin/env bash
# Installs what the tests of the PostgreSQL and etcd backends need, and all backends to be built, on Debian and its descendants:
#
#     tests/servers/install.sh
#
# Only the programs: no service is started or enabled, no database cluster is made. Does nothing
# where everything is there already. Needs root, or sudo.
set -euo pipefail

# Three build crates: `protoc` and the files that its own import `etcd-client`, libclang `foundationdb`.
packages=(postgresql etcd-server protobuf-compiler libprotobuf-dev libclang-dev)

missing=()
for package in "${packages[@]}"; do
    status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
    [[ $status == installed ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

as_root=()
((EUID == 0)) || as_root=(sudo)

# Debian's packages make a cluster and start a service when they are configured, unless
# `createcluster.conf` and `policy-rc.d` say no. What stood there before stands there again afterwards.
cluster=/etc/postgresql-common/createcluster.conf
policy=/usr/sbin/policy-rc.d
made=()
put_aside() {
    ((${#made[@]} == 0)) || "${as_root[@]}" rm -f "${made[@]}"
}
trap put_aside EXIT
if [[ ! -e $policy ]]; then
    made+=("$policy")
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod +x "$policy"
fi
if [[ ! -e $cluster ]]; then
    "${as_root[@]}" mkdir -p "${cluster%/*}"
    echo 'create_main_cluster = false' | "${as_root[@]}" tee "$cluster" >/dev/null
fi

"${as_root[@]}" apt-get update --quiet
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install --quiet --yes --no-install-recommends \
    -o Dpkg::Options::=--force-confold "${missing[@]}"
