#!/usr/bin/env bash
# Create the job. A run of a workflow makes one job of one instruction, however often it is repeated: the Idempotency-Key
# is made from the run's id and the request. A repeated run continues a job that has failed.
set -euo pipefail
source "$GITHUB_ACTION_PATH/request.sh"

body=$(jq -n '
    {prompt: env.DOCSMITH_PROMPT, asDraft: (env.DOCSMITH_AS_DRAFT == "true")}
    + ({context: env.DOCSMITH_CONTEXT, branch: env.DOCSMITH_BRANCH, model: env.DOCSMITH_MODEL} | with_entries(select(.value != "")))')
run="$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/actions/runs/$GITHUB_RUN_ID"
digest=$(printf '%s\n' "$run" "$DOCSMITH_PROJECT" "$body" | git hash-object --stdin)

docsmith POST job --header "Idempotency-Key: github-$GITHUB_RUN_ID-$digest" --data-binary @- <<<"$body"
[[ $status == 201 ]] || refused
job=$(jq -r '.id // ""' "$answer")
[[ $job =~ ^[A-Za-z0-9_-]+$ ]] || fail "The answer names no job. Check that url is the address of Docsmith."
output job-id "$job"
echo "Docsmith job $job"

if [[ $(jq -r .status "$answer") == failed && ${GITHUB_RUN_ATTEMPT:-1} -gt 1 ]]; then
    docsmith POST "job/$job/retry"
    [[ $status == 200 || $status == 409 ]] || refused # 409: it is active again
    echo "The job had failed: it is tried again."
fi
