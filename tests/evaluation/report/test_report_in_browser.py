"""The report in a real browser: quiet, self-contained, text as text, usable by keyboard, wide and narrow."""

import dataclasses

import pytest

from pysimt_sac.evaluation.metrics import BleuMetric
from pysimt_sac.evaluation.report.data import analyse
from pysimt_sac.evaluation.report.input import gather
from pysimt_sac.evaluation.report.page import render_page
from tests.evaluation.report.browser import CHROMIUM, Browser, change
from tests.evaluation.report.reporting import NASTY, NASTY_NAME, QUICK, make_report, make_request, write

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian: apt install chromium)")

SYSTEMS = ["base", NASTY_NAME, "third", "fourth", "fifth"]
SHOWN = "[...document.querySelectorAll('#list li h3')].map(h => parseInt(h.textContent.split(' ')[1]) - 1)"
COUNT = "document.getElementById('count').textContent"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make_report(tmp_path_factory.mktemp("data"), 1000, SYSTEMS)


@pytest.fixture(scope="module")
def address(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_page(data), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    running = Browser(tmp_path_factory.mktemp("profile"))
    yield running
    running.close()


@pytest.fixture
def page(browser, address):
    return browser.open(address)


@pytest.mark.parametrize("width", [400, 1600])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_has_no_errors_needs_no_other_file_and_is_legible(browser, address, width, dark):
    page = browser.open(address, width=width, dark=dark)
    assert page.errors() == []
    assert page.requests() == [address]
    assert page.run("document.documentElement.scrollWidth <= window.innerWidth")  # nothing to scroll sideways
    sizes = page.run(
        "[...document.querySelectorAll('p,dd,dt,td,th,label')].map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert min(sizes) >= 13
    assert contrast(page, "body") >= 7
    assert contrast(page, "dt") >= 4.5
    assert contrast(page, "mark.differs") >= 4.5
    assert contrast(page, "mark.wrong") >= 4.5
    assert page.run("document.querySelectorAll('svg.figure').length") == len(SYSTEMS)
    assert page.run("document.querySelectorAll('svg.forest').length") == 2  # of two metrics


def contrast(page, selector):
    """The contrast of text and ground, by WCAG's formula."""
    return page.run(
        f"""(() => {{
            const light = (colour) => {{
                const [r, g, b] = colour.match(/[\\d.]+/g).map((part) => part / 255)
                    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            }};
            let element = document.querySelector({selector!r}), ground = element;
            while (getComputedStyle(ground).backgroundColor === "rgba(0, 0, 0, 0)") ground = ground.parentElement;
            const both = [light(getComputedStyle(element).color), light(getComputedStyle(ground).backgroundColor)];
            return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
        }})()"""
    )


def test_texts_are_shown_as_text_not_as_html(page):
    third = "document.querySelectorAll('#list li')[2]"
    shown = page.run(f"[...{third}.querySelectorAll('.text')].map(e => e.textContent)")
    assert shown == [NASTY] * 7  # source, reference and five systems
    assert page.run("window.harm") is None
    assert page.run("document.querySelectorAll('script').length") == 2
    assert page.run("document.querySelectorAll('#list script, #list b, i').length") == 0
    names = page.run(f"[...{third}.querySelectorAll('dt')].map(e => e.textContent)")
    assert names == ["source", "reference", *SYSTEMS]


def test_filter_by_word(page, data):
    browser_data = data.sets[0].browser
    change(page, "query", "UFER")
    texts = zip(
        browser_data["source"], browser_data["reference"], *(runs[0] for runs in browser_data["outputs"]), strict=True
    )
    expected = [
        line for line, own in enumerate(texts) if any(word.startswith("ufer") for t in own for word in t.split())
    ]
    assert page.run(SHOWN) == expected[:20]
    assert page.run("document.getElementById('count').textContent").startswith(f"1–20 of {len(expected)} sentences")
    change(page, "where", "source")
    assert page.run("document.getElementById('count').textContent") == "No sentence matches."
    change(page, "query", "sho bank")
    found = [
        line
        for line, text in enumerate(browser_data["source"])
        if all(any(word.startswith(term) for word in text.split()) for term in ("sho", "bank"))
    ]
    assert page.run(SHOWN) == found[:20]


def test_filter_by_phrase(page, data):
    """In quotes: whole words, one after the other; without the second quote the last one may go on."""
    browser_data = data.sets[0].browser
    texts = [f" {text} " for text in browser_data["reference"]]
    change(page, "where", "reference")
    for query, wanted in (('"ein mann"', " ein mann "), ('"ein ma', " ein ma"), ("„Ein  Mann“", " ein mann ")):
        change(page, "query", query)
        expected = [line for line, text in enumerate(texts) if wanted in text]
        assert page.run(SHOWN) == expected[:20]
        assert page.run(COUNT).endswith(f"of {len(expected)} sentences; scores: sentence BLEU")
    change(page, "query", 'hund "ein mann"')
    both = [line for line, text in enumerate(texts) if " ein mann " in text and " hund" in text]
    assert page.run(SHOWN) == both[:20]
    change(page, "query", '"mann ein m"')
    assert page.run(COUNT) == "No sentence matches."


VIEW = "[...document.querySelectorAll('#query, #where, #sort')].map(e => e.value)"


def test_the_address_holds_the_view(browser, page, data):
    change(page, "query", '"am ufer"')
    change(page, "where", f"system:{NASTY_NAME}")
    change(page, "sort", "loss:fifth")
    page.run("document.getElementById('next').click()")
    shown, address = page.run(SHOWN), page.run("location.href")
    other = browser.open(address)
    assert other.run(SHOWN) == shown
    assert other.run(VIEW) == ['"am ufer"', f"system:{NASTY_NAME}", "loss:fifth"]
    assert other.run("document.getElementById('translations').getBoundingClientRect().top") < 20
    assert other.errors() == []
    wrong = browser.open(page.run("location.href.split('#')[0]") + "#sort=gain:nobody&set=none&page=999&in=&q=ufer")
    assert wrong.run(VIEW) == ["ufer", "any", "line"]
    assert wrong.run("document.getElementById('next').disabled")  # the last page there is
    assert wrong.errors() == []


@pytest.mark.parametrize("place", ["translations", "scores"])
def test_the_address_of_a_section_leads_to_it(browser, address, place):
    page = browser.open(f"{address}#{place}")
    assert page.run(f"document.getElementById('{place}').getBoundingClientRect().top") < 20
    assert page.run("document.querySelectorAll('#list li').length") == 20
    assert page.errors() == []


def test_another_run_can_be_chosen(browser, tmp_path):
    """Of one system two runs, of the other one: it keeps its only one."""
    request = make_request(tmp_path, 30, ["base", "sys"])
    second = write(tmp_path / "second", ["zweiter lauf ."] * 30)
    outputs = {**request.outputs, ("sys", "test"): (*request.outputs["sys", "test"], second)}
    data = analyse(gather(dataclasses.replace(request, outputs=outputs)), [BleuMetric()], QUICK)
    (tmp_path / "report.html").write_text(render_page(data), encoding="utf-8")
    page = browser.open((tmp_path / "report.html").as_uri())
    texts = "[...document.querySelectorAll('#list li:first-child .text')].map(e => e.textContent)"
    first = page.run(texts)
    change(page, "run", "1")
    assert page.run(texts) == [*first[:3], "zweiter lauf ."]
    assert first[3] != "zweiter lauf ."
    change(page, "query", "zweiter")
    assert page.run(COUNT).startswith("1–20 of 30 sentences")
    other = browser.open(page.run("location.href"))
    assert other.run(texts) == page.run(texts)
    assert other.errors() == []


def test_the_back_button_returns_to_the_view_before(page):
    back = (
        "new Promise(done => { addEventListener('popstate', () => setTimeout(done), {once: true}); history.back(); })"
    )
    for typed in ("u", "uf", "ufer"):
        change(page, "query", typed)
    found = page.run(SHOWN)
    change(page, "sort", "gain:fifth")
    assert page.run(SHOWN) != found
    page.run(back)
    assert page.run(VIEW) == ["ufer", "any", "line"]
    assert page.run(SHOWN) == found
    page.run("location.hash = 'scores'")  # a part of the page, not a view
    assert page.run(VIEW) == ["ufer", "any", "line"]
    page.run(back)
    page.run(back)  # over all that was typed
    assert page.run(VIEW) == ["", "any", "line"]
    assert page.run(SHOWN) == list(range(20))


def test_filter_by_ambiguous_word(page):
    change(page, "word", "=bank")
    assert page.run(SHOWN) == list(range(0, 200, 10))
    assert page.run("document.querySelector('#list mark.wrong').textContent") == "✗\u00a0bank"
    assert page.run("document.querySelector('#list mark.right').textContent") == "✓\u00a0ufer"
    page.run("document.querySelector('button[type=reset]').click()")
    page.run("new Promise(done => setTimeout(done))")
    assert page.run(SHOWN) == list(range(20))
    page.run("document.querySelector('details').open = true; document.querySelector('button.word').click()")
    assert page.run("document.getElementById('word').value") == "=bank"
    assert page.run(SHOWN) == list(range(0, 200, 10))


@pytest.mark.parametrize("sort", ["gain:fifth", "loss:fifth", "score:base"])
def test_sort_by_improvement(page, data, sort):
    change(page, "sort", sort)
    scores = [runs[0] for runs in data.sets[0].browser["scores"]]
    gain = [new - old for new, old in zip(scores[4], scores[0], strict=True)]
    values = {"gain": [-value for value in gain], "loss": gain, "score": scores[0]}[sort.split(":")[0]]
    shown = page.run(SHOWN)
    assert [values[line] for line in shown] == pytest.approx(sorted(values)[:20])


def test_only_where_systems_differ(page, data):
    change(page, "differing", "yes")
    outputs = [runs[0] for runs in data.sets[0].browser["outputs"]]
    assert page.run(SHOWN) == [line for line in range(1000) if len({own[line] for own in outputs}) > 1][:20]
    assert 2 not in page.run(SHOWN)


def test_differences_are_marked(page, data):
    """Marked words are those outside a longest common subsequence with what is compared."""
    browser_data = data.sets[0].browser
    for mode, other in (("reference", browser_data["reference"]), ("first", browser_data["outputs"][0][0])):
        change(page, "mark", mode)
        for line in (1, 3, 4):
            row = f"document.querySelectorAll('#list li')[{line}].querySelectorAll('.text')[5]"
            words, others = browser_data["outputs"][3][0][line].split(), other[line].split()
            marks = page.run(f"[...{row}.childNodes].filter(n => n.nodeName === 'MARK').length")
            assert marks == len(words) - common(words, others)
    change(page, "mark", "none")
    assert page.run("document.querySelectorAll('#list mark.differs').length") == 0


def common(words, others):
    """The length of the longest common subsequence."""
    row = [0] * (len(others) + 1)
    for word in words:
        previous = 0
        for place, other in enumerate(others, 1):
            previous, row[place] = row[place], previous + 1 if word == other else max(row[place], row[place - 1])
    return row[-1]


def test_pages(page):
    assert page.run("document.getElementById('previous').disabled")
    page.run("document.getElementById('next').click()")
    assert page.run(SHOWN) == list(range(20, 40))
    page.run("document.getElementById('previous-below').click()")
    assert page.run(SHOWN) == list(range(20))
    change(page, "query", "schl")
    while not page.run("document.getElementById('next').disabled"):
        page.run("document.getElementById('next').click()")
    assert page.errors() == []


def test_all_controls_can_be_reached_by_keyboard(page):
    focused = "document.activeElement.id || document.activeElement.className"
    page.press("Tab", 9)
    assert page.run(focused) == "skip"
    reached = []
    while "next" not in reached:
        page.press("Tab", 9)
        reached.append(page.run(focused))
        assert len(reached) < 60
        outline = page.run("getComputedStyle(document.activeElement).outlineStyle")
        assert outline not in ("none", ""), reached
    controls = ["set", "query", "where", "word", "sort", "mark", "differing"]
    assert [name for name in reached if name in controls] == controls
    page.press("Enter", 13, "\r")
    assert page.run(SHOWN) == list(range(20, 40))


def test_sentences_out_of_sight_are_laid_out_when_the_browser_is_idle(page):
    change(page, "query", "a")
    page.run("new Promise(done => requestIdleCallback(done))")
    assert page.run("document.getElementById('list').className") == ""


def test_the_page_can_be_printed(page):
    assert page.pdf().startswith(b"%PDF")
    page.call("Emulation.setEmulatedMedia", media="print")
    assert page.run("getComputedStyle(document.getElementById('controls')).display") == "none"
    assert page.run("getComputedStyle(document.getElementById('list')).display") != "none"
