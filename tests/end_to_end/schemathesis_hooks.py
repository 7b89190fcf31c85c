"""What the API's description promises beyond what Schemathesis looks for by itself; loaded by its command line."""

import json

import schemathesis


@schemathesis.check
def code_is_documented(ctx, response, case):
    """The ``code`` of an error is one of those that the description names for its status."""
    answers = case.operation.definition.raw["responses"]
    codes = answers.get(str(response.status_code), {}).get("x-codes")
    if codes is not None and "application/problem+json" in str(response.headers.get("content-type")):
        told = json.loads(response.content)
        assert told["code"] in codes, f"{told['code']} is none of {codes}"
        assert (told["status"], told["error"]) == (response.status_code, told["detail"])
        assert response.headers["x-request-id"] == [told["requestId"]]
