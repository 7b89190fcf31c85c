"""The folders of ``docsmith init --compose`` and ``--kubernetes``: what they must keep to; no cluster runs here."""

import json
import re
import stat
import subprocess
from urllib.parse import unquote, urlsplit

import pytest
import yaml

from eventstore.postgres.connections import Address
from service.integrity.wrapping_exchange import checked_secret
from service.runtime.settings.settings_file import read_settings
from tests.cli.test_config import docsmith
from tests.cli.test_init import tool

STOP_SECONDS = 10
INSTANCE = "docsmith"


class Written:
    """A folder that the command has written."""

    def __init__(self, root, kind):
        self.folder = root / kind
        self.done = docsmith(root, "init", f"--{kind}", "--to", str(self.folder))
        assert self.done.returncode == 0, self.done.stderr

    def text(self, name):
        return (self.folder / name).read_text("utf-8")

    def documents(self, name):
        return list(yaml.safe_load_all(self.text(name)))

    def settings(self, environment):
        told = {name: re.sub(r"\$\{\w+:\?[^}]*\}", "docs.example.com", value) for name, value in environment.items()}
        reading = read_settings(self.folder / "docsmith.toml", told)
        assert reading.problems == ()
        return reading.settings

    def address(self, name):
        """The parts of an address, whose password is also in a file of its own."""
        text = self.text(f"secrets/{name}-address").strip()
        assert Address(text).text == text
        parts = urlsplit(text)
        assert unquote(parts.password) == self.text(f"secrets/{name}-password")
        return parts


@pytest.fixture(scope="module")
def compose(tmp_path_factory):
    return Written(tmp_path_factory.mktemp("deployments"), "compose")


@pytest.fixture(scope="module")
def kubernetes(tmp_path_factory):
    return Written(tmp_path_factory.mktemp("deployments"), "kubernetes")


@pytest.fixture(params=["compose", "kubernetes"])
def written(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return json.loads(docsmith(tmp_path_factory.mktemp("openapi"), "openapi").stdout)["paths"]


def test_secrets_are_new_and_in_files_of_their_own(written, tmp_path):
    secrets = ("log-password", "vault-password", "vault-secret")
    passwords = {written.text(f"secrets/{name}").strip() for name in secrets}
    assert len(passwords) == len(secrets)
    assert all(len(one) >= 40 for one in passwords)
    other = Written(tmp_path, written.folder.name)
    assert {other.text(f"secrets/{name}").strip() for name in secrets}.isdisjoint(passwords)
    assert stat.S_IMODE((written.folder / "secrets").stat().st_mode) == 0o700
    elsewhere = [file for file in written.folder.iterdir() if file.is_file()]
    shown = written.done.stdout + written.done.stderr + "".join(file.read_text() for file in elsewhere)
    assert not any(password in shown for password in passwords)
    ignored = written.text(".gitignore").split()
    assert ignored == ["/secrets/", "/keys.env"]


def test_folder_that_is_there_is_not_touched(written, tmp_path):
    before = {file: file.read_bytes() for file in written.folder.rglob("*") if file.is_file()}
    again = docsmith(tmp_path, "init", f"--{written.folder.name}", "--to", str(written.folder))
    assert (again.returncode, "is there already" in again.stderr) == (1, True)
    assert {file: file.read_bytes() for file in written.folder.rglob("*") if file.is_file()} == before


def test_folder_is_for_deployments_only(tmp_path):
    assert docsmith(tmp_path, "init", "--to", "elsewhere").returncode == 1
    assert docsmith(tmp_path, "init", "--compose", "--kubernetes").returncode == 2


def test_no_word_is_left_to_fill_in(written):
    for file in written.folder.iterdir():
        if file.is_file():
            assert re.findall(r"(?<![$%])\{(version|program|proxies|keys)\}", file.read_text()) == []


# Compose


def services(compose):
    [document] = compose.documents("compose.yaml")
    return document, {name: one for name, one in document["services"].items() if name.startswith(INSTANCE)}


def test_compose_names_only_what_it_declares(compose):
    document, _ = services(compose)
    for service in document["services"].values():
        assert set(service.get("secrets", ())) <= document["secrets"].keys()
        assert set(service["networks"]) <= document["networks"].keys()
        assert set(service.get("depends_on", ())) <= document["services"].keys()
        for volume in service["volumes"]:
            source = volume.partition(":")[0]
            assert (compose.folder / source).is_file() if source.startswith("./") else source in document["volumes"]
    for secret in document["secrets"].values():
        assert (compose.folder / secret["file"]).is_file()
    build = document["x-docsmith"]["build"]
    assert (compose.folder / build["dockerfile"]).is_file()


def test_compose_runs_three_instances_with_settings_that_exist(compose):
    _, instances = services(compose)
    assert len(instances) == 3
    settings = {name: compose.settings(one["environment"]) for name, one in instances.items()}
    assert sorted(one.instances.home for one in settings.values()) == [False, False, True]
    for name, one in settings.items():
        assert one.instances.url == f"http://{name}:{one.server.port}"
        assert one.server.host == "0.0.0.0"
        grace = instances[name]["stop_grace_period"]
        assert int(grace.removesuffix("s")) > one.server.drain_seconds + STOP_SECONDS
        assert [volume for volume in instances[name]["volumes"] if volume.endswith(":/data")] == [f"{name}:/data"]
        assert instances[name]["healthcheck"]["test"] == ["CMD", "docsmith", "health", "--requests"]
        assert all(one["condition"] == "service_healthy" for one in instances[name]["depends_on"].values())


def test_compose_keeps_databases_apart(compose):
    document, instances = services(compose)
    assert document["networks"]["databases"] == {"internal": True}
    assert [name for name, one in document["services"].items() if "ports" in one] == ["proxy"]
    assert document["services"]["proxy"]["networks"] == ["front"]
    for name in ("log", "vault"):
        database, parts = document["services"][name], compose.address(name)
        assert database["networks"] == ["databases"]
        assert database["secrets"] == [f"{name}-password"]
        told = database["environment"]
        assert (parts.hostname, parts.username, parts.path) == (name, told["POSTGRES_USER"], f"/{told['POSTGRES_DB']}")
        assert told["POSTGRES_PASSWORD_FILE"] == f"/run/secrets/{name}-password"
    for one in instances.values():
        assert one["secrets"] == ["log-address", "vault-address", "vault-secret"]
        told = one["environment"]
        assert told["DOCSMITH_STORE_FILE"] == "/run/secrets/log-address"
        assert told["DOCSMITH_VAULT_FILE"] == "/run/secrets/vault-address"
        assert told["DOCSMITH_VAULT_SECRET_FILE"] == "/run/secrets/vault-secret"
        assert one["read_only"]
        assert one["cap_drop"] == ["ALL"]


def test_caddy_asks_readiness_and_repeats_what_is_safe(compose, paths):
    document, instances = services(compose)
    text = compose.text("Caddyfile")
    settings = compose.settings({})
    [upstreams] = re.findall(r"reverse_proxy (.*) \{", text)
    assert upstreams.split() == [f"{name}:{settings.server.port}" for name in instances]
    [path] = re.findall(r"health_uri (\S+)", text)
    assert "get" in paths[path]
    [interval] = re.findall(r"health_interval (\d+)s", text)
    assert 3 * int(interval) < settings.server.drain_seconds
    [methods] = re.findall(r"lb_retry_match \{\s*method (.*)\s*\}", text)
    assert set(methods.split()) == {"GET", "HEAD", "OPTIONS"}
    [kept] = re.findall(r"keepalive (\d+)s", text)
    assert int(kept) < settings.server.idle_seconds
    assert text.count("{") == text.count("}")
    [subnet] = [one["subnet"] for one in document["networks"]["front"]["ipam"]["config"]]
    assert settings.server.trusted_proxies == (subnet,)


def test_caddy_takes_its_file(compose, tmp_path):
    caddy = tool("caddy", "install Debian's package caddy to run it")
    done = subprocess.run(
        [caddy, "validate", "--adapter", "caddyfile", "--config", str(compose.folder / "Caddyfile")],
        env={"HOME": str(tmp_path), "DOCSMITH_ADDRESS": "localhost"},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_compose_takes_its_file(compose):
    docker = tool("docker", "install Docker with its compose plugin to run it")
    if subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode != 0:
        pytest.skip("asks docker compose; install the plugin to run it")
    done = subprocess.run(
        [docker, "compose", "config", "--quiet"],
        cwd=compose.folder, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_upgrade_replaces_each_instance_with_the_home_last(compose):
    document, instances = services(compose)
    text = compose.text("upgrade.sh")
    assert subprocess.run(["/bin/sh", "-n", str(compose.folder / "upgrade.sh")], check=False).returncode == 0
    [order] = re.findall(r"for instance in (.*); do", text)
    assert sorted(order.split()) == sorted(instances)
    home = order.split()[-1]
    assert document["services"][home]["environment"]["DOCSMITH_INSTANCES__HOME"] == "true"
    assert stat.S_IMODE((compose.folder / "upgrade.sh").stat().st_mode) == 0o755


# Kubernetes

VERSIONS = {
    "Namespace": "v1", "Service": "v1", "StatefulSet": "apps/v1", "PodDisruptionBudget": "policy/v1",
    "Ingress": "networking.k8s.io/v1", "NetworkPolicy": "networking.k8s.io/v1",
}  # fmt: skip
POD_FIELDS = {
    "terminationGracePeriodSeconds", "automountServiceAccountToken", "enableServiceLinks", "securityContext",
    "topologySpreadConstraints", "containers", "volumes",
}  # fmt: skip
CONTAINER_FIELDS = {
    "name", "image", "command", "args", "env", "envFrom", "ports", "startupProbe", "livenessProbe", "readinessProbe",
    "resources", "securityContext", "volumeMounts",
}  # fmt: skip


@pytest.fixture(scope="module")
def kustomization(kubernetes):
    [document] = kubernetes.documents("kustomization.yaml")
    return document


@pytest.fixture(scope="module")
def objects(kubernetes, kustomization):
    """All manifests, by kind and name."""
    found = [one for name in kustomization["resources"] for one in kubernetes.documents(name)]
    named = {(one["kind"], one["metadata"]["name"]): one for one in found}
    assert len(named) == len(found)
    return named


def pods(objects):
    return {name: one["spec"]["template"] for (kind, name), one in objects.items() if kind == "StatefulSet"}


def chosen(selector, templates):
    """The names of the pods that a selector chooses."""
    wanted = selector.get("matchLabels", {} if "matchExpressions" in selector else selector)
    found = {name for name, one in templates.items() if wanted.items() <= one["metadata"]["labels"].items()}
    for rule in selector.get("matchExpressions", ()):
        assert rule["operator"] == "In"
        found &= {name for name in found if templates[name]["metadata"]["labels"][rule["key"]] in rule["values"]}
    return found


def test_kustomization_names_every_file(kubernetes, kustomization):
    manifests = {file.name for file in kubernetes.folder.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(kustomization["resources"]) == manifests
    made = [*kustomization["configMapGenerator"], *kustomization["secretGenerator"]]
    for one in (name.partition("=")[2] or name for part in made for name in part.get("files", part.get("envs"))):
        assert (kubernetes.folder / one).is_file()


def test_manifests_have_the_version_of_their_kind(objects):
    assert {(kind, one["apiVersion"]) for (kind, _), one in objects.items()} == set(VERSIONS.items())


def test_each_pod_runs_unprivileged_and_mounts_what_is_there(objects, kustomization):
    made = {one["name"] for one in (*kustomization["configMapGenerator"], *kustomization["secretGenerator"])}
    for name, template in pods(objects).items():
        spec = template["spec"]
        assert spec.keys() <= POD_FIELDS
        assert spec["securityContext"]["runAsNonRoot"]
        assert not spec["automountServiceAccountToken"]
        claims = {one["metadata"]["name"] for one in objects["StatefulSet", name]["spec"]["volumeClaimTemplates"]}
        volumes = {one["name"]: one for one in spec["volumes"]}
        [container] = spec["containers"]
        assert container.keys() <= CONTAINER_FIELDS
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert {one["name"] for one in container["volumeMounts"]} == claims | volumes.keys()
        named = {one["configMap"]["name"] for one in volumes.values() if "configMap" in one}
        named |= {one["secret"]["secretName"] for one in volumes.values() if "secret" in one}
        named |= {one["secretRef"]["name"] for one in container.get("envFrom", ())}
        assert named <= made
        assert {"requests", "limits"} == container["resources"].keys()


def test_instances_take_settings_that_exist(objects, kubernetes, tmp_path):
    spec = pods(objects)[INSTANCE]["spec"]
    assert not spec["enableServiceLinks"]  # DOCSMITH_PORT=tcp://… would be read as a setting
    [container] = spec["containers"]
    told = {one["name"]: one.get("value", "").replace("$(POD_NAME)", "docsmith-1") for one in container["env"]}
    settings = kubernetes.settings({name: value for name, value in told.items() if name.startswith("DOCSMITH_")})
    assert spec["terminationGracePeriodSeconds"] > settings.server.drain_seconds + STOP_SECONDS
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    assert ports == {"http": settings.server.port, "metrics": settings.metrics.port}
    [shell, option, script] = container["command"]
    program = tmp_path / "docsmith"
    program.write_text('#!/bin/sh\necho "$@ $DOCSMITH_INSTANCES__HOME"\n')
    program.chmod(0o755)
    for name, home in (("docsmith-0", "true"), ("docsmith-1", "false"), ("docsmith-10", "false")):
        done = subprocess.run(
            [shell, option, script], env={"PATH": f"{tmp_path}:/usr/bin:/bin", "POD_NAME": name},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout == f"serve {home}\n"


def test_instances_get_the_secret_of_a_wrapped_vault(objects, kubernetes, kustomization):
    [container] = pods(objects)[INSTANCE]["spec"]["containers"]
    [mount] = [one["mountPath"] for one in container["volumeMounts"] if one["name"] == "addresses"]
    told = {one["name"]: one.get("value", "") for one in container["env"]}
    [files] = [one["files"] for one in kustomization["secretGenerator"] if one["name"] == "docsmith-addresses"]
    names = {"DOCSMITH_STORE_FILE", "DOCSMITH_VAULT_FILE", "DOCSMITH_VAULT_SECRET_FILE"}
    assert {told[name] for name in names} == {f"{mount}/{file.removeprefix('secrets/')}" for file in files}
    assert checked_secret(kubernetes.text("secrets/vault-secret").strip()) is not None


def test_ingress_keeps_what_is_not_for_the_public(objects, compose):
    [inside] = re.findall(r"@inside path (.*)", compose.text("Caddyfile"))
    hidden = {path.removesuffix("*") for path in inside.split()} - {"/readyz/"}
    public, kept = (objects["Ingress", name] for name in ("docsmith", "docsmith-inside"))
    [rule] = kept["spec"]["rules"]
    assert {path["path"] for path in rule["http"]["paths"]} == hidden
    assert all(path["pathType"] == "Prefix" for path in rule["http"]["paths"])
    assert rule["host"] == public["spec"]["rules"][0]["host"]
    assert kept["spec"]["tls"] == public["spec"]["tls"]
    target = kept["metadata"]["annotations"]["nginx.ingress.kubernetes.io/rewrite-target"]
    assert target.startswith("/internal/")  # where nothing is without a signature


def test_probes_ask_addresses_that_exist(objects, paths):
    [container] = pods(objects)[INSTANCE]["spec"]["containers"]
    asked = {name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "liveness", "readiness")}
    assert asked == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz/requests"}
    assert all("get" in paths[path] for path in asked.values())
    startup, readiness = container["startupProbe"], container["readinessProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] >= 300
    assert readiness["periodSeconds"] * readiness["failureThreshold"] <= 5


def test_services_and_budget_choose_the_instances(objects):
    templates = pods(objects)
    for (kind, name), one in objects.items():
        if kind == "Service":
            [pod] = chosen(one["spec"]["selector"], templates)
            named = {port["name"] for port in templates[pod]["spec"]["containers"][0]["ports"]}
            assert {port["targetPort"] for port in one["spec"]["ports"]} <= named, name
        if kind == "StatefulSet":
            assert chosen(one["spec"]["selector"], templates) == {name}
            service = objects["Service", one["spec"]["serviceName"]]["spec"]
            assert service["clusterIP"] == "None"
    assert objects["Service", "docsmith-instances"]["spec"]["publishNotReadyAddresses"]
    budget = objects["PodDisruptionBudget", "docsmith"]["spec"]
    assert (budget["maxUnavailable"], chosen(budget["selector"], templates)) == (1, {INSTANCE})
    assert objects["StatefulSet", INSTANCE]["spec"]["replicas"] == 3


def test_network_lets_only_instances_reach_databases(objects):
    templates = pods(objects)
    policies = {name: one["spec"] for (kind, name), one in objects.items() if kind == "NetworkPolicy"}
    assert policies["nothing-else"] == {"podSelector": {}, "policyTypes": ["Ingress"]}
    databases = policies["databases"]
    assert chosen(databases["podSelector"], templates) == templates.keys() - {INSTANCE}
    [rule] = databases["ingress"]
    assert [chosen(one["podSelector"], templates) for one in rule["from"]] == [{INSTANCE}]
    assert chosen(policies["docsmith"]["podSelector"], templates) == {INSTANCE}
    [requests, metrics] = policies["docsmith"]["ingress"]
    assert chosen(requests["from"][0]["podSelector"], templates) == {INSTANCE}
    assert [one["port"] for rule in (requests, metrics) for one in rule["ports"]] == ["http", "metrics"]


def test_databases_have_the_names_of_their_addresses(objects, kubernetes):
    for name in ("log", "vault"):
        parts = kubernetes.address(name)
        [container] = pods(objects)[f"docsmith-{name}"]["spec"]["containers"]
        told = {one["name"]: one["value"] for one in container["env"]}
        assert (parts.username, parts.path) == (told["POSTGRES_USER"], f"/{told['POSTGRES_DB']}")
        assert ("Service", parts.hostname) in objects


def test_kubectl_takes_the_folder(kubernetes):
    kubectl = tool("kubectl", "install it to run it")
    done = subprocess.run(
        [kubectl, "kustomize", str(kubernetes.folder)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    made = [(one["kind"], one["metadata"]["name"]) for one in yaml.safe_load_all(done.stdout)]
    assert len(made) == len(set(made)) > len(VERSIONS)


def test_written_folder_has_no_more_than_its_files(written, tmp_path):
    listed = json.loads(docsmith(tmp_path, "init", f"--{written.folder.name}", "--to", "copy", "--json").stdout)
    found = {str(file.relative_to(written.folder)) for file in written.folder.rglob("*") if file.is_file()}
    assert set(listed["files"]) == found
