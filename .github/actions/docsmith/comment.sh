#!/usr/bin/env bash
# Comment on a pull request. There is one comment for each job: a repeated run changes it.
set -euo pipefail
source "$GITHUB_ACTION_PATH/request.sh"

number=${PULL_REQUEST_NUMBER:-$(jq -r '.pull_request.number // .issue.number // ""' "$GITHUB_EVENT_PATH")}
if [[ -z $number ]]; then
    echo "The workflow runs for no pull request: there is none to comment on."
    exit 0
fi
[[ $number =~ ^[0-9]+$ ]] || fail "pull-request is not a number: $number"

issues="$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/issues"
github() {
    local method=$1 url=$2
    shift 2
    request "$GITHUB_TOKEN" "$method" "$url" --header "Accept: application/vnd.github+json" \
        --header "X-GitHub-Api-Version: 2022-11-28" "$@"
}

export MARK="<!-- docsmith job $DOCSMITH_JOB -->"
known=
for page in {1..30}; do
    github GET "$issues/$number/comments?per_page=100&page=$page" --retry 3
    [[ $status == 200 ]] || fail "The comments of pull request $number cannot be read: status $status"
    known=$(jq -r '[.[] | select((.body // "") | startswith(env.MARK)) | .id][0] // ""' "$answer")
    [[ -z $known && $(jq length "$answer") == 100 ]] || break
done

# A mention in words of the service notifies no one: a zero-width space follows its @.
body=$(jq -n '
    def plain: gsub("@"; "@\u200b") | gsub("<"; "&lt;");
    {pull_request: "opened a pull request: \(env.DOCSMITH_PULL_REQUEST | plain)", nothing_changed: "found nothing to change.",
     needs_input: "needs an answer.", failed: "did not finish the job."} as $words
    | {body: ([env.MARK, "**Docsmith** " + ($words[env.DOCSMITH_OUTCOME] // "is still at work."),
       (env.DOCSMITH_MESSAGE | plain)] | join("\n\n"))}')
if [[ -n $known ]]; then
    github PATCH "$issues/comments/$known" --data-binary @- <<<"$body"
else
    github POST "$issues/$number/comments" --data-binary @- <<<"$body"
fi
[[ $status == 200 || $status == 201 ]] || fail "Pull request $number cannot be commented on: status $status. The token needs pull-requests: write."
