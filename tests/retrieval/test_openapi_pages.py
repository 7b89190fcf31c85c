import json

import pytest

from tests.fakes.sites import read_site
from tests.retrieval.formats import page_of, places, reason

YAML = """\
openapi: 3.1.0
info:
  title: Frob API
  version: "2"
  description: Frobs *for all*.
servers: [{url: https://api.example.com}]
paths:
  /frobs/{id}:
    parameters:
      - {$ref: '#/components/parameters/Id'}
    get:
      operationId: getFrob
      summary: Get a frob
      responses:
        '200':
          description: It.
          content:
            application/json:
              schema: {$ref: '#/components/schemas/Frob'}
    put:
      deprecated: true
      requestBody:
        content:
          application/json:
            schema: {$ref: '#/components/schemas/Frob'}
      responses: {}
components:
  parameters:
    Id: {name: id, in: path, required: true, description: Which one., schema: {type: string}}
  schemas:
    Frob:
      description: A frob.
      required: [name]
      properties:
        name: {type: string, description: What it is called.}
        colour: {enum: [red, blue]}
        parts:
          type: array
          items: {$ref: '#/components/schemas/Frob'}
"""


def test_each_operation_and_schema_is_a_section_with_its_lines():
    page = page_of(YAML, "api.yaml")
    assert page.title == "Frob API"
    assert places(page) == [
        ("", "", 1, 10),
        ("Get a frob (GET /frobs/{id})", "getfrob", 11, 19),
        ("PUT /frobs/{id}", "put-frobsid", 20, 30),
        ("Frob", "schema-frob", 31, 40),
    ]
    got, put, schema = (section.text for section in page.sections[1:])
    assert "- `id` (path, string, required) Which one." in got
    assert "Response 200: It.\n\n- `name` (string, required) What it is called." in got
    assert "Deprecated." in put
    assert "Request body (`application/json`):" in put
    assert "- `colour` (`red` | `blue`)" in schema
    assert "- `parts` (array)" in schema


DEFINED = {"$ref": "#/definitions/A"}


def test_json_and_swagger_2_are_read_alike():
    text = json.dumps(
        {
            "swagger": "2.0",
            "info": {"title": "Old"},
            "paths": {"/a": {"post": {"summary": "Do * it [", "responses": {"200": {"schema": DEFINED}}}}},
            "definitions": {"A": {"properties": {"x": {"type": "integer"}}}},
        },
        indent=1,
    )  # fmt: skip
    page = page_of(text, "swagger.json")
    assert [section.heading for section in page.sections] == ["Do * it [ (POST /a)", "A"]
    assert "- `x` (integer)" in page.sections[0].text
    assert page.sections[0].start_line == 1 + next(n for n, line in enumerate(text.split("\n")) if '"post"' in line)


def test_operation_is_shown_only_on_the_page_that_names_it():
    files = {
        "docs.json": '{"navigation": {"pages": ["a"]}}',
        "api/openapi.yaml": YAML,
        "a.mdx": "---\nopenapi: /api/openapi.yaml GET /frobs/{id}\n---\n\n## Usage\n\nCarefully.\n",
        "b.mdx": "---\ntitle: Put one\nopenapi: PUT /frobs/{id}\n---\n",
        "c.mdx": "---\ntitle: None such\nopenapi: GET /nothing\n---\nText.",
    }
    page = page_of(files, "a.mdx")
    assert page.title == "Get a frob (GET /frobs/{id})"
    assert [section.heading for section in page.sections] == ["Get a frob (GET /frobs/{id})", "Usage"]
    assert "Which one." in page.sections[0].text
    put = page_of(files, "b.mdx")
    assert put.title == "Put one"
    assert "Request body" in put.sections[0].text
    assert page_of(files, "c.mdx").content == "Text."
    described = page_of(files, "api/openapi.yaml")
    assert [section.heading for section in described.sections] == ["", "Frob"]


def test_description_is_found_by_content_at_its_site_address():
    files = {
        "docs/docusaurus.config.js": "",
        "docs/docs/a.md": "Text.",
        "docs/static/petstore.yml": YAML,
        "docs/static/other.yml": "a: 1",
        "docs/node_modules/x/openapi.yml": YAML,
    }
    site = read_site({path: text.encode() for path, text in files.items()})
    assert {path: page.url for path, page in site.pages.items()} == {
        "docs/docs/a.md": "/docs/a",
        "docs/static/petstore.yml": "/petstore.yml",
    }


LAUGHS = "openapi: 3.0.0\na: &a [x, x, x, x, x, x, x, x]\n" + "".join(
    f"{c}: &{c} [{', '.join(['*' + p] * 8)}]\n" for p, c in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("openapi: 3.0.0\npaths: [", "broken"),
        ("openapi: 3.0.0\nx: " + "[" * 500, "broken"),
        ("openapi: 3.0.0\n" + "".join(" " * n + "a:\n" for n in range(1, 400)), "broken"),
        (LAUGHS, "broken"),
        ('{"openapi": "3.0.0", ', "broken"),
        ('{"openapi": "3.0.0", "a": ' + "[" * 100_000, "deeply"),
        ("openapi: 3.0.0\n" + "#" * (8 << 20), "larger"),
    ],
    ids=["cut", "brackets", "indented", "laughs", "cut-json", "deep-json", "large"],
)  # fmt: skip
def test_broken_or_hostile_descriptions_are_skipped_with_reason(text, told):
    assert told in reason(text, "openapi.json" if text.startswith("{") else "openapi.yaml")


def test_schemas_that_refer_to_themselves_end():
    page = page_of(
        "openapi: 3.0.0\npaths: {/a: {get: {parameters: [{$ref: '#/x'}]}}}\nx: {$ref: '#/x'}\n"
        "components: {schemas: {A: {allOf: [&a {$ref: '#/components/schemas/A'}], properties: {a: *a}}}}\n",
        "openapi.yaml",
    )
    assert [section.heading for section in page.sections] == ["GET /a", "A"]
