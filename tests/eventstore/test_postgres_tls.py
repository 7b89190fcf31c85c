"""A log on a server that is reached by TLS, with a password."""

import datetime
from contextlib import closing
from ipaddress import ip_address
from urllib.parse import quote

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from eventstore import StoreUnavailable
from eventstore.postgres.connections import Address, Connections
from eventstore.postgres.postgres_store import PostgresEventStore
from tests.eventstore.cluster import new_cluster
from tests.eventstore.shapes import noted
from tests.service_process import free_port

pytestmark = pytest.mark.slow

PASSWORD = "hunter2/%?"


def certificate(folder, name, hosts):
    """Make a certificate that is its own authority; return its file and that of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / f"{name}.crt", folder / f"{name}.key"
    files[0].write_bytes(made.public_bytes(Encoding.PEM))
    files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The port of a server whose certificate is of 127.0.0.1, and names that authority."""
    cluster = new_cluster()
    cluster.make()
    port = free_port()
    mine, key = certificate(tmp_path_factory.mktemp("server"), "server", [x509.IPAddress(ip_address("127.0.0.1"))])
    cluster.encrypt(mine, key, port)
    cluster.start()
    with closing(Connections.open(Address(f"{cluster.address}&port={port}"))) as connections:
        connections.fetch(f"CREATE ROLE service LOGIN PASSWORD '{PASSWORD}'")
        connections.fetch("CREATE DATABASE log OWNER service")
    yield port, mine
    cluster.remove()


def address(port, authority, *, host="127.0.0.1", password=PASSWORD, mode="verify-full"):
    query = f"sslmode={mode}&sslrootcert={quote(str(authority), safe='')}"
    return Address(f"postgresql://service:{quote(password, safe='')}@{host}:{port}/log?{query}")


async def test_a_log_is_used_by_tls_that_is_verified(server):
    log = address(*server)
    async with await PostgresEventStore.open(log, vault=log) as store:
        await store.append("note-1", [noted(1, "secret")], expected_version=0)
        assert (await store.read_stream("note-1"))[0].personal is not None
    with closing(Connections.open(log)) as connections:
        assert connections.fetch("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")[0][0] is True


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # asyncpg lets go of a refused socket
@pytest.mark.parametrize("change", ["another authority", "another name", "another password", "no encryption"])
async def test_what_is_not_verified_is_refused_without_the_password(server, tmp_path, change):
    port, authority = server
    other, _ = certificate(tmp_path, "other", [x509.IPAddress(ip_address("127.0.0.1"))])
    log = {
        "another authority": address(port, other),
        "another name": address(port, authority, host="localhost"),
        "another password": address(port, authority, password="hunter3/%?"),
        "no encryption": address(port, authority, mode="disable"),
    }[change]
    with pytest.raises(StoreUnavailable) as refused:
        await PostgresEventStore.open(log, vault=log)
    assert "hunter" not in str(refused.value)
    assert f"{'localhost' if change == 'another name' else '127.0.0.1'}/log: " in str(refused.value)
