"""The paper's figures are the paper's, and one's own runs find their place beside them."""

import re
from pathlib import Path

import pytest

from pysimt_sac.core.errors import UserError
from pysimt_sac.evaluation import Resampling
from pysimt_sac.evaluation.report.layout import render
from pysimt_sac.evaluation.report.paper import paper_tables
from pysimt_sac.evaluation.report.paper_tables import Filler, as_table, same_system
from pysimt_sac.evaluation.report.runs_file import EXAMPLE, RunsFile, read_runs
from pysimt_sac.evaluation.scoring.scores import score_text

QUICK = Resampling(shuffles=200, bootstrap=50, seed=1)
LABELS = {
    "multi30k": "tab:res_multi30k",
    "iwslt-multi30k": "tab:res_multi30k-iwslt",
    "iwslt14": "tab:iwslt",
    "lexical-all": "tab:lex_translation",
    "lexical-rare": "tab:lex_translation",
    "ambiguous": "table:amb-bleu",
}


def figures_in_latex(source: str, label: str) -> list[list[str]]:
    """The figures of every line of the table that carries a label, with their stars."""
    table = next(
        part.split(r"\end{table")[0]
        for part in source.split(r"\begin{table")[1:]
        if rf"\label{{{label}}}" in part.split(r"\end{table")[0]
    )
    body = re.sub(r"\\caption.*", "", table, flags=re.DOTALL)
    lines = [re.sub(r"~\\cite\{\w+\}|\\bf\b|@?\\hspace\{[^}]*\}", "", line) for line in body.split(r"\\")]
    return [found for line in lines if (found := re.findall(r"(?<![\w.])(?:\d+\.\d+\*?|-(?= ))", line))]


@pytest.mark.parametrize("key", LABELS)
def test_figures_are_the_papers(research_data, key):
    expected = figures_in_latex((research_data / "paper.tex").read_text(encoding="utf-8"), LABELS[key])
    if key.startswith("lexical"):  # both halves are in one table of the paper
        expected = expected[-12:-6] if key == "lexical-all" else expected[-6:]
    table = paper_tables()[key]
    rows = [cells for systems in table.groups.values() for cells in systems.values()]
    assert len(rows) == len(expected[-len(rows) :])
    for cells, figures in zip(rows, expected[-len(rows) :], strict=True):
        wanted = [figure for figure in figures if figure != "-"]
        found = [cell for cell in cells if cell is not None]
        assert [cell.value for cell in found] == [float(figure.rstrip("*")) for figure in wanted]
        assert [cell.significant for cell in found] == [figure.endswith("*") for figure in wanted]


def test_every_row_has_a_figure_for_every_column():
    for table in paper_tables().values():
        for systems in table.groups.values():
            assert {len(cells) for cells in systems.values()} == {len(table.columns())}


def test_the_papers_ali_for_all_cases_is_what_we_say_it_is():
    for systems in paper_tables()["lexical-all"].groups.values():
        for cells in systems.values():
            for place in range(0, 9, 3):
                assert cells[place + 2].value == pytest.approx(2 * cells[place].value - 100, abs=0.021)


@pytest.fixture
def runs(tmp_path, references, output, monkeypatch) -> Path:
    """A runs file for the first test set, with three systems in all."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pysimt_sac.evaluation.scoring.meteor.find_jar", no_meteor)

    def write(name, lines):
        Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    write("ref.test_2016_flickr.de", references)
    for seed in (1, 2):
        write(f"mle-{seed}.test_2016_flickr", output(seed, 0.3))
        write(f"sac-{seed}.test_2016_flickr", output(seed + 2, 0.1))
    write("c1.test_2016_flickr", output(9, 0.3))
    rows = [f"hund\thund\thunde:4|hund:3\t{line}\t{line % 2}" for line in range(100)]
    write("words.test_2016_flickr.tsv", ["word\tcorrect\tcandidates\tline\trare", *rows])
    write(
        "runs.toml",
        [
            "[multi30k.en-de]",
            'reference = "ref.{set}.de"',
            'ambiguous = "words.{set}.tsv"',
            "[multi30k.en-de.systems]",
            '"C1" = "c1.{set}"',
            'mle = "mle-*.{set}"',
            '"sac-bleu" = ["sac-1.{set}", "sac-2.{set}"]',
        ],
    )
    return tmp_path / "runs.toml"


def no_meteor(given):
    from pysimt_sac.evaluation.scoring.meteor import MeteorUnavailableError

    raise MeteorUnavailableError("not here")


def test_own_runs_stand_beside_the_papers(runs, references, output):
    filler = Filler(read_runs(runs), QUICK)
    filled = filler.fill(paper_tables()["multi30k"])
    rows = [(row.system, row.runs) for row in filled.rows if row.group == "en-de"]
    assert rows == [
        ("MLE", 0),
        ("mle", 2),
        ("ERAC", 0),
        ("SAC BLEU", 0),
        ("sac-bleu", 2),
        ("SAC unsuper", 0),
        ("C1", 1),
    ]
    own = {row.system: row for row in filled.rows if row.runs}
    expected = [score_text(references, output(seed, 0.1))["BLEU"] for seed in (3, 4)]
    bleu, meteor, ter, *others = own["sac-bleu"].cells
    assert bleu.value == pytest.approx(sum(expected) / 2)
    assert bleu.significant
    assert meteor is None
    assert ter.value < own["mle"].cells[2].value
    assert not own["mle"].cells[0].significant  # the baseline, though C1 is named first
    assert others == [None] * 6
    assert any("METEOR is left out" in warning for warning in filler.warnings)
    assert any("mle-*.test_2017_flickr: not found" in warning for warning in filler.warnings)
    shown = render(as_table(filled), "markdown")
    assert re.search(r"\|  \| sac-bleu \| own, 2 runs \| \*\*\d\d\.\d±\d\.\d\*\*\\\* \| - \|", shown)


def first_note(runs, key="multi30k"):
    return Filler(read_runs(runs), QUICK).fill(paper_tables()[key]).notes[0]


def test_the_note_names_the_baseline_of_the_stars(runs):
    text = runs.read_text()
    assert "against MLE (own rows: against your MLE); ±" in first_note(runs)
    assert "against MLE; ±" in first_note(runs, "iwslt14")  # it has no own rows
    without_mle = text.replace('mle = "mle-*.{set}"\n', "")
    runs.write_text(without_mle)
    assert "against MLE (own rows: against your C1); ±" in first_note(runs)
    runs.write_text(text.replace("en-de", "en-fr") + without_mle)
    assert "(own rows: en-fr against your MLE, en-de against your C1); ±" in first_note(runs)


def test_tables_of_ambiguous_words_are_filled(runs):
    filler = Filler(read_runs(runs), QUICK)
    everything, rare = (filler.fill(paper_tables()[key]) for key in ("lexical-all", "lexical-rare"))
    own = next(row for row in everything.rows if row.system == "mle" and row.runs)
    assert own.cells[2].value == pytest.approx(2 * own.cells[0].value - 100)
    assert own.cells[0].value != next(row for row in rare.rows if row.system == "mle" and row.runs).cells[0].value
    ambiguous = filler.fill(paper_tables()["ambiguous"])
    whole = filler.fill(paper_tables()["multi30k"])
    first, second = (next(row for row in table.rows if row.system == "C1") for table in (ambiguous, whole))
    assert first.cells[0].value != second.cells[0].value  # only the sentences of the list are scored


def test_without_runs_the_paper_stands_alone():
    filled = Filler(RunsFile(), QUICK).fill(paper_tables()["iwslt14"])
    assert [row.system for row in filled.rows][:2] == ["MLE", "MIXER"]
    assert not any(row.runs for row in filled.rows)


def test_names_are_recognised_however_they_are_written():
    assert same_system("sac_bleu", "SAC BLEU")
    assert same_system("SAC-unsup", "SAC unsuper")
    assert not same_system("MLE2", "MLE")


def test_the_example_is_a_valid_runs_file(tmp_path):
    path = tmp_path / "runs.toml"
    path.write_text(EXAMPLE, encoding="utf-8")
    sections = read_runs(path).sections
    assert set(sections) == {("multi30k", "en-de"), ("iwslt-multi30k", "de-en"), ("iwslt14", "de-en")}
    assert len(sections["multi30k", "en-de"].systems["SAC BLEU"]) == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "names no runs"),
        ("[multi30k", "not valid TOML"),
        ("[multi3k.en-de]", "did you mean 'multi30k'"),
        ("[multi30k.en-cs]\nreference = 'r'\nsystems = {}", "the paper has no 'en-cs'"),
        ("[multi30k.en-de]\nrefrence = 'r'", "did you mean 'reference'"),
        ("[multi30k.en-de]\nreference = 'r'", "needs reference = PATH and systems"),
        ("[multi30k.en-de]\nreference = 'r'\nsystems = {MLE = 3}", "'MLE' must be a path or a list"),
        ("[multi30k.en-de]\nreference = 'r'\nsystems = {MLE = []}", "'MLE' must be a path or a list"),
    ],
)
def test_a_broken_runs_file_is_refused(tmp_path, content, message):
    path = tmp_path / "runs.toml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        read_runs(path)


def test_a_system_without_any_file_is_a_mistake(runs):
    runs.write_text(runs.read_text().replace("c1.", "c2."))
    with pytest.raises(UserError, match="no output of the system 'C1' exists"):
        Filler(read_runs(runs), QUICK).fill(paper_tables()["multi30k"])
