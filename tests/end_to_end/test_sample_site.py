"""The agent and the assistant on a site as products have them: tests/samples/site, which has four broken links."""

from pathlib import Path

from tests.service_process import service_in

SITE = Path(__file__).parent.parent / "samples" / "site"


def test_a_products_site_is_mended_and_quoted(tmp_path):
    with service_in(tmp_path) as service:
        service.set_up(SITE, domain="lantern")
        service.start()
        watched = service.run("job", "create", "Fix broken links", "--watch")
        assert "Fixed broken links: 4 in 3 pages." in watched.stdout
        answered = service.run("ask", "lantern", "How do I retry a failed job?")
        assert "lantern jobs retry ID" in answered.stdout
        assert "/concepts/retries" in answered.stdout
