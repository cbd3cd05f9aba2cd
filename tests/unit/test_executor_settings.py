"""The executor's own settings: an address to which no request could be sent is found before anything starts."""

import pytest

from placet.executor.settings import Settings
from placet.service.settings import EX_CONFIG, load_settings


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """Settings that are whole but for the CRM's address, which is the parameter."""
    monkeypatch.setenv("PLACET_AMQP_URL", "amqp://executor:word@broker/vhost")
    monkeypatch.setenv("PLACET_CRM_TOKEN", "CANARY")
    monkeypatch.setenv("PLACET_CRM_URL", request.param)
    return request.param


@pytest.mark.parametrize(
    "address",
    ["", "crm.example", "ftp://crm.example", "http://", "http://[", "http://crm:x", "http://crm:99999", "http://a b"],
    indirect=True,
)
def test_an_address_that_is_none_stops_the_executor_by_name(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        load_settings(Settings)
    assert ended.value.code == EX_CONFIG
    assert capsys.readouterr().err.startswith("setting PLACET_CRM_URL: ")


@pytest.mark.parametrize("address", ["http://crm.example", "https://crm:8443/base"], indirect=True)
def test_an_address_is_taken_with_its_port_and_path(address: str) -> None:
    assert str(load_settings(Settings).crm_url).rstrip("/") == address
