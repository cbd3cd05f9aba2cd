"""The URLs of brokers and databases: whatever one leaves out, hides or spells oddly, a login made from it is right (U5)."""

import pytest

from placet.local.addresses import (
    broker_port,
    credentials,
    database_url,
    is_of_this_machine,
    management_url,
    vhost_url,
    without_vhost,
)

pytestmark = pytest.mark.req("U5")


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("amqp://guest:guest@127.0.0.1:5672", "amqp://clerk:se%2Fcret@127.0.0.1:5672/office%2F1"),
        ("amqp://ad%40min:p%3Aw@broker/other", "amqp://clerk:se%2Fcret@broker/office%2F1"),
        ("amqp://broker", "amqp://clerk:se%2Fcret@broker/office%2F1"),
        ("amqp://guest:guest@[::1]:5673", "amqp://clerk:se%2Fcret@[::1]:5673/office%2F1"),
        ("amqps://admin:pw@broker?cafile=%2Fca.pem", "amqps://clerk:se%2Fcret@broker/office%2F1?cafile=%2Fca.pem"),
    ],
)
def test_a_login_to_a_vhost_keeps_the_way_to_the_broker(given: str, made: str) -> None:
    assert vhost_url(given, "office/1", "clerk", "se/cret") == made


@pytest.mark.parametrize(
    ("url", "port"),
    [("amqp://broker", 5672), ("amqps://broker", 5671), ("amqp://a:b@[::1]", 5672), ("amqps://broker:443", 443)],
)
def test_the_port_of_a_broker_depends_on_the_scheme(url: str, port: int) -> None:
    assert broker_port(url) == port


@pytest.mark.parametrize(
    ("url", "login"),
    [
        ("amqp://broker", ("guest", "guest")),
        ("amqp://ad%40min:p%3Aw@broker", ("ad@min", "p:w")),
    ],
)
def test_the_administrator_of_a_broker_is_named_as_he_is_known_there(url: str, login: tuple[str, str]) -> None:
    assert credentials(url) == login


@pytest.mark.parametrize(
    ("url", "api"),
    [
        ("amqp://broker", "http://guest:guest@broker:15672"),
        ("amqp://ad%40min:p%3Aw@broker:5673/other?x=y", "http://ad%40min:p%3Aw@broker:15672"),
        ("amqp://guest:guest@[::1]:5672", "http://guest:guest@[::1]:15672"),
    ],
)
def test_the_management_api_is_on_the_same_host_for_the_same_login(url: str, api: str) -> None:
    assert management_url(url) == api


def test_a_url_without_its_vhost_keeps_all_else() -> None:
    assert without_vhost("amqps://a%40b:c@[::1]:1/v%2F1?x=y") == "amqps://a%40b:c@[::1]:1?x=y"


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("postgresql://postgres@127.0.0.1:5432/postgres", "postgresql://role:p%40w@127.0.0.1:5432/books"),
        ("postgresql://ad%40min:p%3Aw@server", "postgresql://role:p%40w@server/books"),
        ("postgresql://server/postgres", "postgresql://role:p%40w@server/books"),
        ("postgresql://postgres@[::1]/postgres", "postgresql://role:p%40w@[::1]/books"),
        ("postgresql://a:b@one:1,two:2/postgres", "postgresql://role:p%40w@one:1,two:2/books"),
        ("postgres://a:b@server/postgres?sslmode=require", "postgres://role:p%40w@server/books?sslmode=require"),
        ("postgresql:///postgres?host=/run/postgresql", "postgresql://role:p%40w@/books?host=%2Frun%2Fpostgresql"),
        ("postgresql://server/?user=admin&password=pw&dbname=postgres", "postgresql://role:p%40w@server/books"),
    ],
)
def test_a_login_to_a_database_keeps_the_way_to_the_server_and_no_other_login(given: str, made: str) -> None:
    assert database_url(given, "books", "role", "p@w") == made


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("amqp://guest:guest@127.0.0.1", True),
        ("postgresql://localhost/postgres", True),
        ("postgresql://[::1]:5432/postgres", True),
        ("postgresql:///postgres?host=/run/postgresql", True),
        ("postgresql://postgres@%2Frun%2Fpostgresql/postgres", True),
        ("postgresql:///postgres?host=server", False),
        ("postgresql://server/postgres", False),
        ("amqp://[::2]", False),
    ],
)
def test_a_server_of_this_machine_is_known_by_its_address(url: str, here: bool) -> None:
    assert is_of_this_machine(url) is here
