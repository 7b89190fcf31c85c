"""A page for every error code, at the address that a problem's ``type`` names: what it means, and what to do."""

from aiohttp import web
from msgspec import Struct

from service.web.pages.html import html_page

routes = web.RouteTableDef()


class Explained(Struct, frozen=True):
    """An error for the person who meets it."""

    title: str
    text: str


EXPLAINED: dict[str, Explained] = {
    # What is wrong with a request
    "invalid_request": Explained(
        "The request does not fit",
        "The field errors names each place in the body that does not fit, as a JSON path, and what is wrong there."
        " Nothing was recorded; mend the body and send it again.",
    ),
    "invalid_json": Explained(
        "The body is not JSON",
        "Send one JSON document in UTF-8, with nothing after it, as Content-Type application/json.",
    ),
    "unsupported_media_type": Explained(
        "The body has the wrong content type", "Send the header Content-Type: application/json along with the body."
    ),
    "body_too_large": Explained(
        "The body is too large",
        "A request's body may have 5 MiB. Chat clients send earlier answers back: begin a new chat.",
    ),
    "body_too_slow": Explained(
        "The body did not arrive in time", "The connection is too slow, or it broke. Try again."
    ),
    "head_too_large": Explained(
        "The request's head is too large", "The request line or a header is longer than 8 KiB: send fewer cookies."
    ),
    "expectation_failed": Explained("The expectation cannot be met", "Send no Expect header, or 100-continue."),
    "too_many_connections": Explained(
        "There are too many connections",
        "Close those that are not needed, or use one for several requests. A proxy belongs in trusted_proxies.",
    ),
    "method_not_allowed": Explained(
        "The address does not take that method", "The header Allow of the answer names the methods that it takes."
    ),
    "not_found": Explained(
        "There is nothing at this address", "Look at the path: there is no slash at its end, and its case matters."
    ),
    "conflict": Explained(
        "It does not fit the present state",
        "Read the current state, and decide again; the same call will be refused again.",
    ),
    # Keys
    "unauthorized": Explained(
        "There is no usable key",
        "Send Authorization: Bearer and a key. The key may be mistyped, or revoked."
        " Make one with: docsmith key create --kind admin, or --kind assistant --domain DOMAIN",
    ),
    "key_expired": Explained("The key has expired", "Make a new one with: docsmith key create"),
    "forbidden": Explained("The key may not do this", "The key is good, but not for this. See: docsmith key list"),
    "wrong_key_kind": Explained(
        "It is the other kind of key",
        "The agent takes admin keys (docsmith_…), which stay on servers; the assistant takes assistant keys"
        " (docsmith_dsc_…), which may be in a page.",
    ),
    "address_not_allowed": Explained(
        "The key may not be used from this address",
        "It has a list of networks, and the request came from none of them. Behind a reverse proxy, name it in"
        " trusted_proxies, or every request seems to come from the proxy. See: docsmith key show ID",
    ),
    "origin_not_allowed": Explained(
        "The key may not be used by this website",
        "It has a list of origins, and the page that asked is of another. Add it with: docsmith key update ID --origin",
    ),
    # What is not there
    "project_not_found": Explained(
        "Project not found",
        "It does not exist, or it belongs to another organization than the key. See: docsmith project list",
    ),
    "domain_not_found": Explained(
        "Site not found",
        "It does not exist, or it belongs to another organization than the key. See: docsmith project list",
    ),
    "domain_taken": Explained(
        "The domain is taken", "Each site has a domain of its own: choose another with --domain."
    ),
    "job_not_found": Explained(
        "Job not found", "It does not exist, or it belongs to another project than the address names."
    ),
    "thread_not_found": Explained(
        "Thread not found",
        "A thread belongs to its site, and to the fp that began it unless that was anonymous; a threadKey must be the"
        " one that came with its first reply. Leave threadId out to begin a new one.",
    ),
    "message_not_found": Explained(
        "Message not found",
        "messageId names a reply of that thread, as the stream's start has it; one that another reply has replaced is"
        " gone.",
    ),
    "page_not_found": Explained(
        "Page not found",
        "Take the path of a search result. A page for certain groups of readers is there only for those who name one.",
    ),
    "feedback_changed_too_often": Explained(
        "The feedback was changed too often", "What was said last stays; it can be changed no more."
    ),
    "hook_not_found": Explained(
        "Hook not found",
        "Either the project in the address does not exist or accepts no webhooks yet, or the request is not signed with"
        " its secret. Make a new secret with: docsmith webhook incoming PROJECT, and give it to the code host.",
    ),
    "not_indexed": Explained(
        "The site has no index yet", "It is made soon after the project is; at once with: docsmith index DOMAIN"
    ),
    # Models
    "unknown_model": Explained(
        "Model not found in the settings", "Use sonnet, opus, or an alias of a [models.ALIAS] section of docsmith.toml."
    ),
    "model_key_refused": Explained(
        "The provider refuses our key", "The operator's key for this model is missing, wrong, or out of credit."
    ),
    "model_refused_request": Explained(
        "The provider refuses the request", "The model cannot do what was asked of it. Try another model."
    ),
    "model_refused": Explained("The model refused", "It would not carry this out. Ask in other words."),
    "context_window_exceeded": Explained(
        "It does not fit the model's window",
        "Ask for less at once, begin a new chat, or use a model with a larger one.",
    ),
    "model_cut_off": Explained(
        "The model stopped in the middle", "It reached its limit of output. Ask for less at once."
    ),
    "model_reply_broke_off": Explained(
        "The model's reply broke off", "The connection to the provider ended. Try again."
    ),
    "model_reply_too_long": Explained(
        "The model's reply is too long", "It wrote more than a job may hold. Ask for less."
    ),
    "assistant_busy": Explained(
        "The assistant is busy", "Its model accepts no more questions for now. Ask again in a moment."
    ),
    "assistant_unavailable": Explained(
        "The assistant is unavailable",
        "Its model cannot be reached, or broke off. Ask again in a moment; if that goes on, the operator finds the"
        " reason in the service's log.",
    ),
    "assistant_misconfigured": Explained(
        "The assistant is misconfigured",
        "Its model refuses the service's key or requests. The operator finds the reason in the service's log.",
    ),
    "rate_limited": Explained("Too many requests", "Wait as long as Retry-After says, then go on."),
    # Repositories and code hosts
    "too_few_descriptors": Explained(
        "The system lets the service open too few files", "Raise the limit: ulimit -n, or LimitNOFILE= of systemd."
    ),
    "not_a_data_folder": Explained(
        "The folder holds other things", "Name a data folder, or a new or empty one, with --data DIR."
    ),
    "restored_copy": Explained(
        "The data folder is a restored copy",
        "Its original may still run. docsmith take-over --yes goes on from the copy for good; docsmith serve --drill"
        " tries it.",
    ),
    "not_a_copy": Explained(
        "The data folder is not a restored copy",
        "Only what docsmith restore made can be taken over, or run as a drill.",
    ),
    "drill": Explained(
        "The service is tried out on a restored copy",
        "Nothing leaves the machine in a drill: work with a repository or website elsewhere is refused.",
    ),
    "bad_repository": Explained("It is no repository that can be read", "The message says what to do about it."),
    "no_such_repository": Explained(
        "The repository is not there",
        "Its address may be wrong, it may have moved, or the token may not see it: code hosts tell these alike.",
    ),
    "no_such_branch": Explained("The branch is not there", "Name one that is with --ref, or make it."),
    "no_commits": Explained("There is nothing to merge", "The branch has no commit that the base branch lacks."),
    "token_missing": Explained(
        "There is no token for the code host",
        "Set the variable that the project names, or the one with _FILE at its end to a file's name, where the service"
        " runs, and start it again. To name another: docsmith project update DOMAIN --git-token-env VARIABLE.",
    ),
    "token_refused": Explained(
        "The code host refuses the token",
        "It is wrong, has expired or was revoked. Make a new one on the code host and put it where the old one was.",
    ),
    "rights_missing": Explained(
        "The token may not do this",
        "It needs the right to write contents and pull requests of the repository. The message has the host's reason.",
    ),
    "repository_moved": Explained(
        "The repository has another address by now",
        "It was renamed or moved. Set the new address: docsmith project update DOMAIN --repository URL.",
    ),
    "repository_archived": Explained(
        "The repository is archived", "It cannot be changed. Unarchive it on its code host, or work on another."
    ),
    "pull_request_refused": Explained(
        "The code host refuses the pull request", "The message has its reason. Mend that, and send the job a message."
    ),
    "pull_request_not_found": Explained("Pull request not found", "It may have been deleted on its code host."),
    "code_host_unavailable": Explained(
        "The code host cannot be reached",
        "It was tried several times. Once it is back, send the job a message: it hands in what it has.",
    ),
    "branch_is_base": Explained("The work goes on a branch of its own", "Name another branch than the base branch."),
    "branch_moved": Explained(
        "The branch has other commits",
        "Somebody else changed the same files while the job worked on them. Send the job a message: it does its work"
        " again on what is there now.",
    ),
    "no_pages": Explained(
        "The website lists no pages",
        "Docsmith reads what llms.txt, sitemap.xml or llms-full.txt name: give the address that one of them is under.",
    ),
    "redirected": Explained(
        "The website leads elsewhere", "Only its own address is read: give the one that it leads to."
    ),
    "bad_answer": Explained("The website's answer cannot be read", "The message names the page."),
    "read_only": Explained(
        "The documentation is a website",
        "A live website can be asked, not changed: make a project of its repository for jobs.",
    ),
    "branch_protected": Explained("The branch is protected", "Let the job make a branch of its own: name none."),
    "merge_conflict": Explained("It cannot be merged as it is", "Both sides changed the same lines. Merge it by hand."),
    "pull_request_closed": Explained("The pull request is closed", "Open a new one with a new job."),
    "pull_request_merged": Explained("The pull request is merged", "It cannot be closed any more."),
    "busy": Explained("Somebody else is at it", "Another process changes the same branch at this moment. Try again."),
    "too_large": Explained("It is larger than Docsmith takes", "The message names the limit."),
    "out_of_memory": Explained(
        "It needs more memory than it may have", "Use a smaller repository or folder, or give the machine more memory."
    ),
    "timed_out": Explained("It took too long", "Try again; a large repository may need a closer network."),
    # Jobs
    "budget_exhausted": Explained(
        "The job has used up its budget", "Steps, tokens, money and minutes are limited in the settings: ask for less."
    ),
    "secret_in_changes": Explained(
        "The changes hold a secret", "Something that looks like a key or a password would have been published."
    ),
    "cancelled": Explained("It was cancelled", "Somebody asked for that. A message to the job has it go on."),
    "not_held": Explained(
        "The job is somebody else's by now", "It has ended, or was taken up again, so what came too late is dropped."
    ),
    "job_ended": Explained("The job has ended", "There is nothing to cancel any more. Look at how it ended."),
    "text_damaged": Explained(
        "A text cannot be read any more",
        "The log has it encrypted, and it does not open with its key: one of them is damaged. Everything else goes on."
        " The operator finds out which with: docsmith doctor. Begin a new chat, job or webhook.",
    ),
    "job_erased": Explained(
        "The job's words were erased", "What was typed for it is gone, so it cannot go on. Begin a new job."
    ),
    "too_many_messages": Explained("The job has too many messages", "Begin a new one."),
    "commit_differs": Explained(
        "The log does not give the commit again",
        "What is recorded of the job leads to another commit than the recorded one, so nothing was pushed. Verify the"
        " log with: docsmith audit verify",
    ),
    "idempotency_key_reused": Explained(
        "The Idempotency-Key was used before",
        "A key stands for one request. Send a new key with a new request, and the same request with the same key.",
    ),
    "invalid_idempotency_key": Explained(
        "The Idempotency-Key cannot be used",
        "Send one, of 1 to 255 printable ASCII characters; a UUID is a good choice.",
    ),
    "interrupted": Explained(
        "It was interrupted",
        "The process that worked on it ended. An answer can be asked for again; a job goes on alone.",
    ),
    # Ourselves
    "unavailable": Explained("It cannot be done right now", "Something that this needs is down or busy. Try again."),
    "outcome_unknown": Explained(
        "It is not known whether this was recorded",
        "The disk failed at the moment of writing. Send the same request again with the same Idempotency-Key: it is"
        " done once. Without one, look first whether what you asked for is there.",
    ),
    "internal": Explained(
        "Something went wrong on our side",
        "It has been logged under the request's id. Tell the operator the requestId.",
    ),
}


@routes.get("/docs/errors/{code}")
async def explain(request: web.Request) -> web.Response:
    explained = EXPLAINED.get(request.match_info["code"])
    if explained is None:
        raise web.HTTPNotFound
    title, text = explained.title, explained.text
    return html_page(request, "error.html", title=title, text=text, page="/troubleshooting", label="Troubleshooting")
