"""A step's key changes with all that its outcome depends on, and with nothing else."""

from pysimt_sac.cli import main_sac
from pysimt_sac.reproduce.step_records import Step, StepRecords
from tests.reproduce.tiny import write


def keys(work):
    """Keys by what a step does."""
    return {step.title: step.key for step in work.steps()}


def changed(before, after):
    """The steps that would be done again, by their first two words."""
    assert before.keys() == after.keys()
    return {title for title in before if before[title] != after[title]}


SAC = {"train SAC BLEU, seed 1", "translate with SAC BLEU, seed 1, beam2"}
TEXT = {"prepare multi30k", "prepare mlt"}


def test_a_changed_system_changes_only_the_keys_that_depend_on_it(plan):
    first = keys(plan())
    assert changed(first, keys(plan([("train.max_iterations:8", "train.max_iterations:9")]))) == SAC
    assert changed(first, keys(plan([("train.max_epochs:4", "train.max_epochs:5")]))) == set(first) - TEXT
    assert changed(first, keys(plan([("model.emb_dim:8", "model.emb_dim:9")]))) == set(first) - TEXT


def test_paths_and_what_is_only_reported_change_no_key(plan):
    first = keys(plan())
    assert changed(first, keys(plan(out="elsewhere"))) == set()
    assert changed(first, keys(plan([("train.disp_freq:2", "train.disp_freq:3")]))) == set()
    assert changed(first, keys(plan(jobs=4, threads=2))) == set()


def test_changed_text_redoes_everything(plan, inputs):
    first = keys(plan())
    lines = (inputs / "raw/train.en").read_text().splitlines()
    write(inputs / "raw/train.en", [*lines[:-1], "Two dogs are sleeping."])
    assert changed(first, keys(plan())) == set(first)


def test_changed_lists_of_ambiguous_words_redo_their_preparation_alone(plan, inputs):
    first = keys(plan())
    write(inputs / "mlt/ENDE_MLTD_full.txt", ["bank bank 1000"])
    assert changed(first, keys(plan())) == {"prepare mlt"}


def test_a_corpus_that_was_prepared_elsewhere_counts_by_its_content(plan, inputs):
    words = ["prepare", "multi30k", "--raw", inputs / "raw", "--pair", "en-de", "--out", inputs / "ready", "--jobs", 1]
    assert main_sac([str(word) for word in words]) == 0
    work = plan(raw=None, prepared=inputs / "ready")
    assert [step.title for step in work.preparations] == ["prepare mlt"]
    assert work.trainings[0].after == ()
    train = inputs / "ready/en-de/train.lc.norm.tok.en"
    assert str(train) in str(work.trainings[0].options.data["train_set"])
    first = keys(work)
    write(train, train.read_text().splitlines()[::-1])
    assert changed(first, keys(plan(raw=None, prepared=inputs / "ready"))) == set(first)


def test_seeds_have_actors_of_their_own(plan):
    work = plan(seeds=2)
    by_name = {(step.system, step.seed): step for step in work.trainings}
    for seed in (1, 2):
        actor, own = by_name["MLE", seed], by_name["SAC BLEU", seed]
        assert own.after == (actor.id,)
        assert f"train.pretrained_file:{actor.folder}" in own.words
        assert f"train.seed:{seed}" in own.words
    order = [step.title for step in work.steps() if step.title.startswith("train")]
    assert order == [f"train {name}, seed {seed}" for name in ("MLE", "SAC BLEU") for seed in (1, 2)]


def test_other_text_for_one_system_redoes_what_depends_on_it(plan, inputs):
    """In the corpus by its place, elsewhere by its content; neither is there before the corpus is prepared."""
    first = keys(plan())
    half = "train.eval_freq:4", 'train.eval_freq:4", "data.val_set.src:{data}/{pair}/half.en'
    assert changed(first, keys(plan([half]))) == SAC
    write(inputs / "own.en", ["a dog"])
    own = "train.eval_freq:4", f'train.eval_freq:4", "data.val_set.src:{inputs}/own.en'
    second = keys(plan([own]))
    assert changed(first, second) == SAC
    write(inputs / "own.en", ["a cat"])
    assert changed(second, keys(plan([own]))) == SAC


def test_other_sources_to_translate_redo_the_translations(plan, inputs):
    first = keys(plan())
    write(inputs / "own.en", ["a dog"])
    own = "train.tensorboard_dir:", f'train.tensorboard_dir:", "data.test_2016_flickr_set.src:{inputs}/own.en'
    work = plan([own])
    translated = {title for title in first if title.startswith("translate")}
    assert changed(first, keys(work)) == translated
    assert f"data.test_2016_flickr_set.src:{inputs}/own.en" in work.translations[0].words
    write(inputs / "own.en", ["a cat"])
    assert changed(keys(work), keys(plan([own]))) == translated


def test_a_file_of_the_users_own_counts_by_its_content(plan, inputs):
    write(inputs / "mine.py", ["x = 1"])
    change = [("train.eval_freq:4", f"model.plugin_modules:{inputs}/mine.py")]
    first = keys(plan(change))
    write(inputs / "mine.py", ["x = 2"])
    assert changed(first, keys(plan(change))) == SAC


def test_a_step_is_done_as_long_as_its_outputs_are_unchanged(tmp_path):
    records, output = StepRecords(tmp_path), tmp_path / "out.txt"
    output.write_text("one")
    assert records.read("step") is None
    written = records.write(Step("step", "do it", "key", ("do", "it")), 1.5, "abc", [output], {"update": 3})
    assert records.read("step") == written
    assert (written.seconds, written.details, written.outputs[0].size) == (1.5, {"update": 3}, 3)
    output.write_text("two")
    assert records.read("step") is None
    output.write_text("one")
    assert records.read("step") == written
    output.unlink()
    assert records.read("step") is None


def test_a_damaged_record_does_not_count(tmp_path):
    records = StepRecords(tmp_path)
    records.write(Step("step", "do it", "key", ()), 0, "abc", [], {})
    path = records.path("step")
    path.write_text(path.read_text()[:-20])
    assert records.read("step") is None
