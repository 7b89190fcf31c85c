"""What answers of the deprecated version say of themselves, errors included."""

from datetime import date

import aiohttp

from service.runtime.settings.settings_file import load_settings
from service.web.http.connections.admission import AdmissionSettings
from tests.web.entrance import entrance

OLD = "/discovery/v1/assistant/al%20pha/message"


async def test_deprecated_address_names_its_successor_and_its_end(tmp_path):
    settings = AdmissionSettings(sunset=date(2027, 6, 30))
    async with entrance(tmp_path, settings) as entry, aiohttp.ClientSession() as http:
        async with http.post(entry.url + OLD, json={}) as response:
            assert response.status == 401
            assert response.headers["Deprecation"].startswith("@")
            assert response.headers["Link"] == '</discovery/v2/assistant/al%20pha/message>; rel="successor-version"'
            assert response.headers["Sunset"] == "Wed, 30 Jun 2027 00:00:00 GMT"
        async with http.post(entry.url + OLD.replace("v1", "v2"), json={}) as response:
            assert not {"Deprecation", "Sunset", "Link"} & set(response.headers)


async def test_without_an_end_there_is_no_sunset(tmp_path):
    async with (
        entrance(tmp_path) as entry,
        aiohttp.ClientSession() as http,
        http.post(entry.url + OLD, json={}) as response,
    ):
        assert "Deprecation" in response.headers
        assert "Sunset" not in response.headers


def test_the_end_is_a_date_of_the_settings(tmp_path):
    assert load_settings(None, {"DOCSMITH_SERVER__V1_SUNSET": "2027-06-30"}).server.v1_sunset == date(2027, 6, 30)
    file = tmp_path / "docsmith.toml"
    file.write_text("[server]\nv1_sunset = 2027-06-30\n")
    assert load_settings(file, {}).server.v1_sunset == date(2027, 6, 30)
