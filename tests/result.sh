# To be sourced by the campaigns: writes what one of them found as JSON, to the file that `result` names
# if there is one. `began` is when it began, `invoked` how it was called, `seed` may be empty.
#
#     write_result CAMPAIGN COUNT UNIT FAILURES CONTROL CAUGHT DETAILS
#
# CAUGHT is true or false, DETAILS are the members of a JSON object.
write_result() {
    [[ -n $result ]] || return 0
    local quoted=${invoked//\\/\\\\}
    cat >"$result" <<JSON
{
  "campaign": "$1",
  "command": "${quoted//\"/\\\"}",
  "seed": ${seed:-null},
  "date": "$(date --utc --iso-8601=seconds)",
  "count": $2,
  "unit": "$3",
  "failures": $4,
  "negative_control": {"name": "$5", "caught": $6},
  "seconds": $((SECONDS - began)),
  "details": {$7}
}
JSON
}
