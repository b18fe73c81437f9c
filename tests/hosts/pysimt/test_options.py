"""pysimt's own parser reads what ours has merged, overridden and interpolated, and finds the same values."""

import json

from tests.hosts.pysimt.hosts import NEEDS_PYSIMT, run_python, train
from tests.models.runs import points
from tests.rewards.test_own_options import QUICK, REWARD

pytestmark = NEEDS_PYSIMT

COMPARE = """
import json, sys
from pysimt.config import Options
from pysimt_sac.hosts.engine.config.parser import read_config, resolved_text
path, written, overrides = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
ours = read_config(path, overrides)
open(written, "w").write(resolved_text(ours, given_only=True))
theirs = Options(written, [])
given = {section: {key: (theirs[section][key], ours[section][key]) for key in ours.merged.sections[section]}
         for section in ours.sections}
print(json.dumps([[section, key, *map(repr, pair)] for section in given for key, pair in given[section].items()]))
"""


def test_what_pysimt_itself_stumbles_over(toy):
    """Included files, words that begin like constants, values with colons, and overrides of what others refer to."""
    mine = toy.folder / "mine.conf"
    mine.write_text("[include]\nbase: toy.conf\n[vars]\nx: de\ncase: truecase\n[data]\nstyle: ${vars:case}.${vars:x}\n")
    words = ["vars.x:fr", "data.val_set.src:/a:b", "model.direction:src:Text -> trg:Text", "data.none: nonesuch"]
    pairs = json.loads(run_python(COMPARE, mine, toy.folder / "written.conf", json.dumps(words)))
    assert [pair for pair in pairs if pair[2] != pair[3]] == []
    found = {key: theirs for _, key, theirs, _ in pairs}
    assert found["style"] == "'truecase.fr'"
    assert found["none"] == "'nonesuch'"
    assert "PosixPath('/a:b')" in found["val_set"]


def test_options_of_a_reward_of_ones_own_reach_it_inside_pysimt(toy):
    path = toy.folder / "gift.py"
    path.write_text(REWARD)
    words = [*QUICK, f"model.reward_modules:{path}", "model.reward:gift", "model.reward_scale:1.0"]
    folder = train("pysimt", toy, "gift", *words, "model.gift_size:2.5", "model.gift_wrap:foil")
    assert set(points(folder, "rl_reward_gift").values()) == {-2.5}
