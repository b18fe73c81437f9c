"""Configurations in pysimt's options: its own mean the same, and ours are merged, overridden and interpolated."""

import json

from pysimt_sac.hosts.choice import pysimt_folder
from tests.hosts.pysimt.hosts import NEEDS_PYSIMT, run_python, train
from tests.models.runs import points
from tests.rewards.test_own_options import QUICK, REWARD

pytestmark = NEEDS_PYSIMT

COMPARE = """
import json, sys
from pysimt_sac.hosts.pysimt.device import reserve_device
reserve_device("cpu")
from pysimt_sac.hosts.engine.config.parser import read_config
from pysimt_sac.hosts.pysimt.host import Options, pysimt_options
differing = {}
for path in sys.argv[1:]:
    theirs, ours = Options(path, []), pysimt_options(read_config(path))
    pairs = {(section, key): (theirs[section].get(key), ours[section].get(key))
             for section in theirs.sections for key in {**theirs[section], **ours[section]}}
    differing[path] = [[*where, *map(repr, pair)] for where, pair in pairs.items() if pair[0] != pair[1]]
print(json.dumps(differing))
"""
MERGED = """
import json, sys
from pysimt_sac.hosts.pysimt.device import reserve_device
reserve_device("cpu")
from pysimt_sac.hosts.engine.config.parser import read_config
from pysimt_sac.hosts.pysimt.host import pysimt_options
data = pysimt_options(read_config(sys.argv[1], sys.argv[2:])).data
print(json.dumps({key: repr(value) for key, value in data.items()}))
"""


def test_pysimts_own_configurations_mean_what_they_mean_to_pysimt():
    paths = sorted((pysimt_folder().parent / "configs").rglob("*.conf"))
    found = json.loads(run_python(COMPARE, *paths).splitlines()[-1])
    assert len(found) > 100
    assert {path: pairs for path, pairs in found.items() if pairs} == {}


def test_what_pysimt_itself_stumbles_over(toy):
    """Included files, words that begin like constants, values with colons, and overrides of what others refer to."""
    mine = toy.folder / "mine.conf"
    mine.write_text("[include]\nbase: toy.conf\n[vars]\nx: de\ncase: truecase\n[data]\nstyle: ${vars:case}.${vars:x}\n")
    words = ["vars.x:fr", "data.val_set.src:/a:b", "model.direction:src:Text -> trg:Text", "data.none: nonesuch"]
    found = json.loads(run_python(MERGED, mine, *words).splitlines()[-1])
    assert found["style"] == "'truecase.fr'"
    assert found["none"] == "'nonesuch'"
    assert "PosixPath('/a:b')" in found["val_set"]


def test_options_of_a_reward_of_ones_own_reach_it_inside_pysimt(toy):
    path = toy.folder / "gift.py"
    path.write_text(REWARD)
    words = [*QUICK, f"model.reward_modules:{path}", "model.reward:gift", "model.reward_scale:1.0"]
    folder = train("pysimt", toy, "gift", *words, "model.gift_size:2.5", "model.gift_wrap:foil")
    assert set(points(folder, "rl_reward_gift").values()) == {-2.5}
