"""Who may use a server."""

import hmac

import pytest

from modeling_gtransformer.server.api_error import ApiError
from modeling_gtransformer.server.api_keys import ApiKeys
from modeling_gtransformer.usage_error import UsageError


@pytest.fixture
def file(tmp_path):
    (tmp_path / "keys.txt").write_text("one\n# of us\n\n  twö\n", encoding="utf-8-sig")
    return str(tmp_path / "keys.txt")


def test_keys(file):
    keys = ApiKeys(file)
    for key in ("one", "twö"):
        keys.check(key)
    for key in (None, "", "on", "onee", "# of us", "\ud800"):
        with pytest.raises(ApiError) as error:
            keys.check(key)
        assert error.value.status == 403


def test_every_key_is_compared_in_constant_time(file, monkeypatch):
    compared = []
    compare = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda *pair: compared.append(pair) or compare(*pair))
    ApiKeys(file).check("one")
    assert len(compared) == 2 and all(len(one) == len(other) == 32 for one, other in compared)


def test_without_a_file_nobody_needs_a_key():
    ApiKeys(None).check(None)


def test_a_file_without_keys(tmp_path):
    (tmp_path / "keys.txt").write_text("# none\n")
    with pytest.raises(UsageError, match="has no API keys: write one on each line"):
        ApiKeys(str(tmp_path / "keys.txt"))
    with pytest.raises(UsageError, match=r"cannot be read: .*No such file"):
        ApiKeys(str(tmp_path / "none.txt"))
