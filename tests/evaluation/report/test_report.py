"""The report: what is gathered, what is computed, and a page in which nothing can do harm."""

import json
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.filters import FilterChain
from pysimt_sac.evaluation.comparison import AgainstBaseline, Interval, MetricComparison, SystemScore
from pysimt_sac.evaluation.metrics import BleuMetric
from pysimt_sac.evaluation.report.charts import Effect, Forest
from pysimt_sac.evaluation.report.curves import curve_figures
from pysimt_sac.evaluation.report.data import analyse, verdict
from pysimt_sac.evaluation.report.input import ReportRequest, baseline_first, gather, unpaired
from pysimt_sac.evaluation.report.page import render_page
from pysimt_sac.evaluation.report.runs import ReportSystem, RunFolder, RunLog, find_provenance, name_runs
from pysimt_sac.evaluation.significance import OverSeeds
from tests.evaluation.report.reporting import NASTY, NASTY_NAME, QUICK, make_report, make_request, write


class Reader(HTMLParser):
    """Collects elements and the texts of scripts."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.scripts, self.inside = [], [], False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside = tag == "script"

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.scripts.append(data)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make_report(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def page(data):
    return render_page(data, title=f"A {NASTY} title")


def test_the_page_holds_all_texts_exactly(data, page):
    content, _ = Reader(page).scripts
    (one,) = json.loads(content)["sets"]
    assert one["source"][2] == one["reference"][2] == one["outputs"][1][0][2] == NASTY
    assert one["systems"] == ["base", NASTY_NAME, "third"]
    assert one == json.loads(json.dumps(data.sets[0].browser))
    assert len(one["scores"]) == 3
    assert all(score == pytest.approx(100) for score in (runs[0][2] for runs in one["scores"]))
    case = one["cases"][1]
    assert (case["line"], case["word"], case["correct"], case["wrong"]) == (10, "bank", ["ufer"], ["bank"])
    assert case["labels"] == [[-1], [1], [1]]


def test_texts_cannot_become_elements(page):
    reader = Reader(page)
    names = [tag for tag, _ in reader.elements]
    assert names.count("script") == 2
    assert "i" not in names  # the system's name
    assert "harm" not in reader.scripts[1]
    assert page.count("<!--") == 0


def test_the_page_needs_nothing_from_elsewhere(page):
    reader = Reader(page)
    for _, attributes in reader.elements:
        assert "style" not in attributes  # the policy would block it
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href"):
            assert attributes.get(name, "#").startswith(("#", "data:,"))
    addresses = set(re.findall(r"https?://[^\s\"'<]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg"}  # a name, not an address


def test_the_policy_allows_nothing_but_the_page_itself(page):
    policy = next(attributes["content"] for _, attributes in Reader(page).elements if "http-equiv" in attributes)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert "*" not in policy


def test_significance_marks_and_accuracy_are_those_of_compare_and_lexical(data, page):
    (one,) = data.sets
    third = one.comparison["BLEU"].systems[2]
    assert third.against_baseline.p <= 0.05
    assert f'data-label="average"><b>{third.average:.2f}</b></td>' in page  # the best
    assert f'data-label="diff.">{third.against_baseline.difference:+.2f}</td>' in page
    assert f'data-label="p, sentences">{third.against_baseline.p:.4f}*</td>' in page
    assert one.lexical.systems[0].all.lta == 0
    assert one.lexical.systems[2].all.lta == 100
    assert 'data-word="bank"' in page


def test_every_table_has_a_caption_and_every_figure_a_name(page):
    reader = Reader(page)
    names = [tag for tag, _ in reader.elements]
    assert names.count("table") == names.count("caption") >= 4
    for tag, attributes in reader.elements:
        if tag == "svg" and attributes["class"] in ("figure", "forest"):
            assert attributes["role"] == "img"
            assert attributes["aria-label"]


def test_without_training_text_and_ambiguous_words_the_rest_is_shown(tmp_path):
    full = make_request(tmp_path, 20, ["one"])
    request = ReportRequest(outputs=full.outputs, sources=full.sources, references=full.references)
    data = analyse(gather(request), [BleuMetric()], QUICK)
    shown = render_page(data)
    assert 'id="scores"' in shown
    assert 'id="lexical"' not in shown
    assert 'id="frequency"' not in shown
    assert 'id="curves"' not in shown
    assert data.figures() == []
    assert 'id="verdict"' not in shown


def test_curves_of_one_system_share_a_style(tmp_path):
    def run(**curves):
        return RunFolder(tmp_path, {}, FilterChain([]), {}, curves)

    systems = [
        ReportSystem("a", (run(val_BLEU=((1, 2.0),)), run(val_BLEU=((1, 3.0),), rl_some_figure=((1, 1.0),)))),
        ReportSystem("b", (run(val_BLEU=((1, 4.0),), lr=((1, 0.1),)),)),
    ]
    figures = {figure.file: figure for figure in curve_figures(systems)}
    assert list(figures) == ["curve-val_BLEU", "curve-lr", "curve-rl_some_figure"]
    assert [figure.section for figure in figures.values()] == ["validation", "more", "more"]
    a, b = figures["curve-val_BLEU"].series
    assert [(line.name, line.style) for line in (a, b)] == [("a", 0), ("b", 1)]
    assert (a.points, a.band, b.band) == (((1, 2.5),), ((2.0, 3.0),), ())  # the mean of two runs, and their range
    assert figures["curve-rl_some_figure"].series[0].style == 0
    assert [figure.caption for figure in figures.values()] == ["Validation BLEU", "Learning rate", "Some figure"]


def test_a_system_without_a_translation_of_a_set_is_left_out_of_it_and_the_others_keep_their_style(tmp_path):
    full = make_request(tmp_path, 20, ["one", "two", "three"])
    outputs = {**full.outputs, ("one", "more"): full.outputs["one", "test"]}
    outputs["three", "more"] = full.outputs["three", "test"]
    files = {"test": full.sources["test"], "more": full.sources["test"]}
    references = {"test": full.references["test"], "more": full.references["test"]}
    given = gather(ReportRequest(outputs=outputs, sources=files, references=references, training=full.training))
    assert "more: 'two' has no translation of it" in given.warnings
    test, more = analyse(given, [BleuMetric()], QUICK).sets
    assert more.browser["systems"] == ["one", "three"]
    styles = [{line.name: line.style for line in one.figures[0].series} for one in (test, more)]
    assert analyse(given, [BleuMetric()], QUICK).pooled is None
    assert styles[1] == {name: style for name, style in styles[0].items() if name != "two"}


def test_runs_whose_folders_have_the_same_last_part_are_named_by_more_of_their_path(tmp_path):
    logs = {seed: RunLog(software=f"host {seed}", warnings=(f"warning {seed}",)) for seed in ("seed1", "seed2")}
    runs = [RunFolder(tmp_path / seed / "sac", {}, FilterChain([]), {}, {}, log=log) for seed, log in logs.items()]
    found = find_provenance([ReportSystem("SAC", tuple(runs)), ReportSystem("other", (runs[0],))])
    assert found.warnings == {
        "SAC (seed1/sac)": ("warning seed1",),
        "SAC (seed2/sac)": ("warning seed2",),
        "other (sac)": ("warning seed1",),
    }
    assert found.software == {"host seed1": ("SAC (seed1/sac)", "other (sac)"), "host seed2": ("SAC (seed2/sac)",)}
    assert [row[:2] for row in found.runs.rows] == [("SAC", "seed1/sac"), ("SAC", "seed2/sac"), ("other", "sac")]


def test_runs_without_common_updates_are_lines_of_their_own(tmp_path):
    runs = [RunFolder(tmp_path, {}, FilterChain([]), {}, {"lr": ((step, 1.0),)}) for step in (1, 2)]
    (figure,) = curve_figures([ReportSystem("a", tuple(runs))])
    assert [line.points for line in figure.series] == [((1, 1.0),), ((2, 1.0),)]


def test_the_rewards_curve_is_the_first_diagnostic(tmp_path):
    curves = dict.fromkeys(("rl_entropy", "rl_q", "rl_reward_bleu"), ((1, 1.0),))
    figures = curve_figures([ReportSystem("a", (RunFolder(tmp_path, {}, FilterChain([]), {}, curves),))])
    assert [(figure.section, figure.caption) for figure in figures] == [
        ("diagnostics", "Reward: bleu"), ("diagnostics", "Entropy of the policy"), ("more", "Q"),
    ]  # fmt: skip


def score_of(difference, seeds=None, identical=False, n_runs=1):
    """A system that differs from the baseline by so much, 0.2 up and down over sentences."""
    interval = Interval(difference - 0.2, difference + 0.2)
    against = AgainstBaseline(difference, interval, 0.01, seeds, identical)
    return SystemScore("SAC", (1.0,) * n_runs, 1.0, 0.1, None, interval, against)


@pytest.mark.parametrize(
    ("system", "metric", "expected"),
    [
        (score_of(0.5, OverSeeds(0.5, 0.1, 0.9, 3, 3)), ("BLEU", True),
         "SAC is better than MLE by 0.50 BLEU, 95% over 3 seeds 0.10 to 0.90."),
        (score_of(-0.5, OverSeeds(-0.5, -0.9, -0.1, 0, 3)), ("BLEU", True),
         "SAC is worse than MLE by 0.50 BLEU, 95% over 3 seeds 0.10 to 0.90."),
        (score_of(-0.5, OverSeeds(-0.5, -0.9, -0.1, 3, 3)), ("TER", False),
         "SAC is better than MLE by 0.50 TER, 95% over 3 seeds 0.10 to 0.90."),
        (score_of(0.5, OverSeeds(0.5, -0.3, 1.3, 3, 3)), ("BLEU", True),
         "SAC is not shown to differ from MLE: +0.50 BLEU, 95% over 3 seeds -0.30 to +1.30 (these runs do: p 0.01 over "
         "test sentences)."),
        (score_of(0.1, OverSeeds(0.1, 0.05, 0.15, 3, 3)), ("BLEU", True),
         "SAC is better than MLE by 0.10 BLEU, 95% over 3 seeds 0.05 to 0.15; over test sentences -0.10 to +0.30, so "
         "others may not show it."),
        (score_of(0.5), ("BLEU", True),
         "In these runs SAC is better than MLE by 0.50 BLEU, 95% over test sentences 0.30 to 0.70; one run does not "
         "show what another seed would give."),
        (score_of(0.5, n_runs=3), ("BLEU", True),
         "In these runs SAC is better than MLE by 0.50 BLEU, 95% over test sentences 0.30 to 0.70; the runs are not "
         "paired by seed."),
        (score_of(0.0, identical=True), ("BLEU", True), "SAC translates exactly like MLE."),
    ],
)  # fmt: skip
def test_the_verdict_says_no_more_than_the_intervals(system, metric, expected):
    n_first = 2 if len(system.runs) > 1 else 1
    first = SystemScore("MLE", (1.0,) * n_first, 1.0, 0.1, None, Interval(0, 2), None)
    assert verdict(MetricComparison(metric[0], "", metric[1], (first, system)), system) == expected


def test_forest_plots_have_what_is_better_on_the_right():
    def plot(higher_is_better):
        effect = Effect("a", 0, "test", 1.0, (0.5, 1.5), (0.8, 1.2))
        root = ElementTree.fromstring(Forest("t", (effect,), higher_is_better, "t").svg())
        zero = next(float(e.get("x1")) for e in root.iter() if e.get("class") == "axis")
        return float(next(e.get("cx") for e in root.iter() if e.get("class") == "dot s0")) - zero

    assert plot(higher_is_better=True) > 0 > plot(higher_is_better=False)


def test_runs_of_other_seeds_are_no_pairs(tmp_path):
    def system(name, *seeds):
        folders = (RunFolder(tmp_path, {}, FilterChain([]), {}, {}, {"train": {"seed": seed}}) for seed in seeds)
        return ReportSystem(name, tuple(folders))

    control, same, other, fewer = system("C1", 1, 2), system("A", 1, 2), system("B", 3, 4), system("D", 3)
    (warning,) = unpaired([control, same, other, fewer])
    assert warning.startswith("'B' and 'C1' have runs of other seeds")


def test_the_control_is_the_baseline_unless_another_is_named(tmp_path):
    def system(name, curve="val_BLEU", start=""):
        options = {"train": {"pretrained_file": start}}
        return ReportSystem(name, (RunFolder(tmp_path, {}, FilterChain([]), {}, {curve: ((1, 1.0),)}, options),))

    actor, control, sac = system("MLE"), system("continued", start="x"), system("SAC", "rl_entropy", "x")

    def names(*systems, wanted=""):
        return [each.name for each in baseline_first(systems, wanted)]

    assert names(actor, sac, control) == ["continued", "MLE", "SAC"]
    assert names(actor, sac) == ["MLE", "SAC"]
    assert names(actor, control) == ["MLE", "continued"]  # no reinforcement that it could control
    assert names(actor, sac, control, wanted="SAC") == ["SAC", "MLE", "continued"]
    with pytest.raises(UserError, match=r"--baseline: no system is called 'SAX' \(did you mean 'SAC'"):
        baseline_first([sac], "SAX")


def test_names_of_runs(tmp_path):
    folder = tmp_path / "demo=1"
    folder.mkdir()
    assert name_runs([f"SAC={folder}", str(folder), "SAC=x"])[:2] == (("SAC", folder), ("demo=1", folder))
    with pytest.raises(UserError, match="two runs are called 'x'"):
        name_runs(["a/x", "b/x"])


def test_missing_input_is_reported(tmp_path):
    with pytest.raises(UserError, match="no runs or hypotheses are given"):
        gather(ReportRequest())
    full = make_request(tmp_path, 20, ["one", "two"])
    with pytest.raises(UserError, match=r"no test set is left.*--src test=FILE"):
        gather(ReportRequest(outputs=full.outputs))
    extra = {**full.outputs, ("two", "more"): full.outputs["two", "test"]}
    given = gather(ReportRequest(outputs=extra, sources=full.sources, references=full.references))
    assert [one.name for one in given.sets] == ["test"]
    assert any("more: left out, because the baseline, 'one', has no translation" in text for text in given.warnings)
    short = {"test": write(tmp_path / "short", ["x"])}
    with pytest.raises(UserError, match="has 1 lines, but the reference"):
        gather(ReportRequest(outputs=full.outputs, sources=short, references=full.references))
