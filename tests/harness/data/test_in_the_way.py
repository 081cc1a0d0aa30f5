"""What lies between a user and the data: an authority, a proxy, or a dead line."""

from __future__ import annotations

import pytest
import requests

from harness.data.catalog import DATASETS
from harness.data.fetch import DataFolders, resolve
from harness.errors import MachineError


@pytest.mark.parametrize(
    ("raised", "remedy"),
    [
        (requests.exceptions.SSLError("CERTIFICATE_VERIFY_FAILED"), "SSL_CERT_FILE"),
        (requests.exceptions.ProxyError("x"), "HTTPS_PROXY"),
        (requests.exceptions.InvalidSchema("no SOCKS"), "HTTPS_PROXY"),
    ],
)
def test_generated_data_stands_in_for_a_dead_line_alone(tmp_path, monkeypatch, raised, remedy):
    def asked(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(requests.Session, "get", asked)
    name, folders = next(iter(DATASETS)), DataFolders(None, tmp_path)
    with pytest.raises(MachineError, match=remedy):
        resolve([name], folders=folders, allow_generated=True)
    raised = requests.exceptions.ConnectionError("x")
    assert resolve([name], folders=folders, allow_generated=True)[name].source == "generated"


def test_a_file_of_authorities_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "none.pem"))
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with pytest.raises(MachineError, match=r"none\.pem"):
        resolve([next(iter(DATASETS))], folders=DataFolders(None, tmp_path), allow_generated=True)
