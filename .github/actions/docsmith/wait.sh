#!/usr/bin/env bash
# Wait for the end of the job, and publish how it went.
set -euo pipefail
source "$GITHUB_ACTION_PATH/request.sh"

[[ $DOCSMITH_TIMEOUT_MINUTES =~ ^[0-9]{1,5}$ ]] || fail "timeout-minutes is not a whole number: $DOCSMITH_TIMEOUT_MINUTES"
minutes=$((10#$DOCSMITH_TIMEOUT_MINUTES)) # also of 08, which would be octal
deadline=$((SECONDS + minutes * 60))
last=
while true; do
    left=$((deadline - SECONDS))
    docsmith GET "job/$DOCSMITH_JOB?wait=$((left > 30 ? 30 : left > 0 ? left : 0))"
    [[ $status == 200 ]] || refused
    state=$(jq -r .status "$answer")
    now=$(jq -r '"\(.title): " + (.waiting.reason // .outcome // .status)' "$answer")
    [[ $now == "$last" ]] || show <<<"$now"
    last=$now
    [[ $state == active && $SECONDS -lt $deadline ]] || break
done

output status "$state"
output outcome "$(jq -r '.outcome // ""' "$answer")"
output pull-request "$(jq -r '.prLink // ""' "$answer")"
output message "$(jq -r '.message // .failure.message // ""' "$answer")"
jq -r '"### Docsmith: \(.title | gsub("[<>&]"; " "))\n\n\(.prLink // .outcome // .status | gsub("<"; "&lt;"))\n\n\(.message // .failure.message // "" | gsub("<"; "&lt;"))"' \
    "$answer" >>"$GITHUB_STEP_SUMMARY"

case $state in
failed) fail "The job failed: $(jq -r '"\(.failure.message) (\(.failure.code))"' "$answer")" ;;
active) [[ $minutes == 0 ]] || fail "The job did not end within $minutes minutes. It goes on: repeat the workflow run to wait again." ;;
esac
