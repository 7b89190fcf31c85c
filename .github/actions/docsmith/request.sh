# Sourced by the steps of the action: requests, and text of others in the workflow's log and outputs.

answer=$(mktemp)
trap 'rm -f "$answer"' EXIT

# fail TEXT: end the step with an error in the log, on one line.
fail() {
    jq -rn --arg text "$1" '"::error title=Docsmith::" + ($text | gsub("%"; "%25") | gsub("[\r\n]+"; " "))'
    exit 1
}

# show: print text from standard input, in which the runner reads no commands.
show() {
    local token
    token=$(random)
    printf '::stop-commands::%s\n' "$token"
    cat
    printf '\n::%s::\n' "$token"
}

random() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n'; }

# output NAME VALUE: set an output of the step, of one line or several.
output() {
    local mark
    mark=$(random)
    printf '%s<<%s\n%s\n%s\n' "$1" "$mark" "$2" "$mark" >>"$GITHUB_OUTPUT"
}

# request TOKEN METHOD URL [CURL OPTION…]: send a request; the body comes from standard input, where there is one.
# Sets `status`, and leaves the answer's body in the file `answer`. The token is in no command line.
request() {
    local token=$1 method=$2 url=$3
    shift 3
    [[ $token =~ ^[A-Za-z0-9_.-]+$ ]] || fail "The key or token is empty, or has other characters than those of keys."
    status=$(
        curl --silent --show-error --globoff --max-time 120 --proto '=http,https' --output "$answer" --write-out '%{http_code}' \
            --request "$method" --header "Content-Type: application/json" "$@" \
            --config <(printf 'header = "Authorization: Bearer %s"\n' "$token") -- "$url"
    ) || fail "$url cannot be reached."
}

# docsmith METHOD PATH [CURL OPTION…]: a request to the service, sent again while it is away or busy.
docsmith() {
    local method=$1 path=$2
    shift 2
    request "$DOCSMITH_KEY" "$method" "${DOCSMITH_URL%/}/v2/agent/$DOCSMITH_PROJECT/$path" \
        --retry 6 --retry-all-errors --retry-max-time 300 "$@"
}

# refused: end the step with the service's words.
refused() {
    fail "$(jq -r '"\(.detail // "No details.") (\(.code // "unknown"))"' "$answer" 2>/dev/null || echo "No details."): status $status"
}

[[ ! ${DOCSMITH_KEY-} =~ ^[A-Za-z0-9_.-]+$ ]] || printf '::add-mask::%s\n' "$DOCSMITH_KEY" # another one is refused
# Plain http shows the key to the network: it is for a service on the runner itself.
here='^http://(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:[0-9]+)?(/|$)'
[[ ${DOCSMITH_URL-https://} =~ ^https?:// ]] || fail "The input url is invalid: it must begin with https://."
[[ ${DOCSMITH_URL-https://} == https://* || $DOCSMITH_URL =~ $here ]] || fail "The input url is invalid: the key would cross the network in plain text. Use https://."
[[ ${DOCSMITH_PROJECT-x} =~ ^[A-Za-z0-9_-]+$ ]] || fail "The project's id is empty or invalid: docsmith project list shows it."
