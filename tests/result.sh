# To be sourced by the scripts that are campaigns: writes what one of them found, as the campaigns in
# tests/campaigns do, to the file that `result` names if there is one. `began` is when it began,
# `invoked` how it was called, `seed` may be empty.
#
#     write_result CAMPAIGN COUNT UNIT FAILURES CONTROLS DETAILS
#
# It notes the commit, with a `+` where files are others, result files aside. CONTROLS are the members of a JSON object, names and whether they were caught; so are DETAILS, what is
# counted besides and how much.
write_result() {
    [[ -n $result ]] || return 0
    local quoted=${invoked//\\/\\\\} commit
    commit=$(git rev-parse --short HEAD 2>/dev/null || true)
    [[ -z $(git status --porcelain -- . ':!tests/campaigns/results' 2>/dev/null) ]] || commit+=+
    mkdir -p "$(dirname "$result")"
    cat >"$result" <<JSON
{
  "campaign": "$1",
  "command": "${quoted//\"/\\\"}",
  "date": "$(date --utc +%F)",
  "commit": "$commit",
  "seed": ${seed:-null},
  "count": $2,
  "unit": "$3",
  "failures": $4,
  "seconds": $((SECONDS - began)),
  "controls": {$5},
  "details": {$6}
}
JSON
}
