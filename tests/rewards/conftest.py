import pytest

from pysimt_sac.core.registry import REWARDS


@pytest.fixture
def registry(monkeypatch):
    """Names registered in a test are forgotten after it."""
    monkeypatch.setattr(REWARDS, "items", dict(REWARDS.items))
