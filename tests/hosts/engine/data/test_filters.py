"""pysimt's filters, by their names."""

import pytest

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.filters import FILTERS, FilterChain

CASES = {
    "de-bpe": ("viel@@ er bü@@ sche .", "vieler büsche ."),
    "de-spm": ("▁ein ▁klei n es ▁haus", "ein kleines haus"),
    "de-segment": ("<stem:geh> <suffix:en>", "gehen"),
    "de-compound": ("haus @@ tür", "haustür"),
    "de-hyphen": ("t @-@ shirt", "t-shirt"),
    "c2w": ("e i n <s> h u n d", "ein hund"),
    "lower": ("Ein Hund", "ein hund"),
    "upper": ("ein hund", "EIN HUND"),
    "de-tag": ("<de> ein hund", " ein hund"),
}


@pytest.mark.parametrize("name", FILTERS)
def test_every_filter_does_what_pysimts_does(name):
    given, expected = CASES[name]
    assert FilterChain([name])([given]) == [expected]


def test_a_chain_applies_them_in_order():
    assert FilterChain(["de-bpe", "de-hyphen"])(["t @-@ sh@@ irt"]) == ["t-shirt"]


def test_an_unknown_filter_is_refused_with_the_nearest():
    with pytest.raises(UserError, match="did you mean 'de-bpe'"):
        FilterChain(["debpe"])
