# To be sourced by the scripts that are campaigns: writes what one of them found, as the campaigns in
# tests/campaigns do, to the file that `result` names if there is one. `began` is when it began,
# `invoked` how it was called, `seed` may be empty.
#
#     write_result CAMPAIGN COUNT UNIT FAILURES CONTROLS DETAILS
#
# CONTROLS are the members of a JSON object, names and whether they were caught; so are DETAILS, what is
# counted besides and how much.
write_result() {
    [[ -n $result ]] || return 0
    local quoted=${invoked//\\/\\\\}
    cat >"$result" <<JSON
{
  "campaign": "$1",
  "command": "${quoted//\"/\\\"}",
  "date": "$(date --utc +%F)",
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
