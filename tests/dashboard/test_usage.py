"""The usage page: cost bounds, and who sets them."""

from tests.dashboard.conftest import SAME_ORIGIN


async def test_owner_sets_the_cost_bound_of_a_site(service, owner, editor, outsider, people):
    path = f"/dashboard/{service.organization_id}/usage"

    async def sent(client, usd, to=path, project=service.project_id):
        fields = {"project": project, "usd": usd}
        async with client.post(f"{to}/bounds", data=fields, headers=SAME_ORIGIN) as answer:
            return answer.status, await answer.text()

    try:
        status, page = await sent(owner, "2.50")
        assert (status, "$2.50" in page) == (200, True)
        for wrong in ("-1", "nan", "1e9", "two"):
            assert (await sent(owner, wrong))[0] == 400
        assert (await sent(editor, "1"))[0] == 403
        theirs = path.replace(service.organization_id, people.other_organization_id)
        assert (await sent(outsider, "1", to=theirs))[0] == 404
        async with editor.get(path) as answer:
            page = await answer.text()
        assert ("$2.50" in page, "/bounds" in page) == (True, False)
    finally:
        assert (await sent(owner, ""))[0] == 200
    assert service.cli("project", "show", service.project_id)["maxCostUsdDay"] == 0
