// The browser of translations: filters, sorts, marks differences. Text is only inserted as text, never as HTML.
(() => {
  "use strict";
  const PAGE = 20;
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const controls = at("controls");
  const state = { set: 0, found: [], page: 0 };

  // Prepared once, so that filtering only searches strings.
  for (const set of data.sets) {
    set.low = {
      source: set.source.map(searchable),
      reference: set.reference.map(searchable),
      outputs: set.outputs.map((lines) => lines.map(searchable)),
    };
    set.casesAt = new Map();
    for (const one of set.cases) {
      if (!set.casesAt.has(one.line)) set.casesAt.set(one.line, []);
      set.casesAt.get(one.line).push(one);
    }
  }

  function searchable(line) {
    return " " + line.toLowerCase();
  }

  function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function fill(select, options) {
    select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
  }

  // Controls

  function fillForSet() {
    const set = data.sets[state.set];
    const first = set.systems[0];
    fill(at("where"), [
      ["any", "any text"], ["source", "the source"], ["reference", "the reference"],
      ...set.systems.map((name, number) => [String(number), name]),
    ]);
    const counts = new Map();
    for (const one of set.cases) counts.set(one.word, (counts.get(one.word) || 0) + 1);
    const words = [...counts].sort((a, b) => a[0].localeCompare(b[0]));
    fill(at("word"), [
      ["", "all sentences"],
      ...(words.length ? [["*any", "any ambiguous word"], ["*rare", "a rare case"],
        ["*split", "a case on which systems differ"]] : []),
      ...words.map(([word, count]) => ["=" + word, `${word} (${count})`]),
    ]);
    at("word").disabled = !words.length;
    const sorts = [["line", "line number"]];
    for (let number = 1; number < set.systems.length; number++) {
      sorts.push([`+${number}`, `largest gain of ${set.systems[number]} over ${first}`]);
      sorts.push([`-${number}`, `largest loss of ${set.systems[number]} against ${first}`]);
    }
    set.systems.forEach((name, number) => sorts.push([`s${number}`, `score of ${name}, lowest first`]));
    fill(at("sort"), sorts);
    at("differing").disabled = set.systems.length < 2;
  }

  // Filtering and sorting

  function textsOf(set, line, where) {
    if (where === "source" || where === "reference") return [set.low[where][line]];
    if (where !== "any") return [set.low.outputs[Number(where)][line]];
    return [set.low.source[line], set.low.reference[line], ...set.low.outputs.map((lines) => lines[line])];
  }

  function wantedCase(one, choice) {
    if (choice === "*any") return true;
    if (choice === "*rare") return one.rare;
    if (choice === "*split") return one.labels.some((label) => label !== one.labels[0]);
    return one.word === choice.slice(1);
  }

  function find() {
    const set = data.sets[state.set];
    const terms = at("query").value.toLowerCase().split(/\s+/).filter(Boolean).map((term) => " " + term);
    const where = at("where").value;
    const choice = at("word").value;
    const differing = at("differing").checked;
    const found = [];
    for (let line = 0; line < set.source.length; line++) {
      if (choice && !(set.casesAt.get(line) || []).some((one) => wantedCase(one, choice))) continue;
      if (differing && set.outputs.every((lines) => lines[line] === set.outputs[0][line])) continue;
      if (terms.length) {
        const texts = textsOf(set, line, where);
        if (!terms.every((term) => texts.some((text) => text.includes(term)))) continue;
      }
      found.push(line);
    }
    const sort = at("sort").value;
    const value = sortValue(set, sort);
    if (value) found.sort((a, b) => value(a) - value(b) || a - b);
    state.found = found;
    state.page = 0;
    show();
  }

  function sortValue(set, sort) {
    const number = Number(sort.slice(1));
    if (sort === "line") return null;
    if (sort[0] === "s") return (line) => set.scores[number][line];
    const sign = sort[0] === "+" ? -1 : 1;
    return (line) => sign * (set.scores[number][line] - set.scores[0][line]);
  }

  // Marking

  // Which words of `words` are not in their longest common subsequence with `others`.
  function differing(words, others) {
    const rows = words.length + 1;
    const columns = others.length + 1;
    const length = new Uint16Array(rows * columns);
    for (let i = words.length - 1; i >= 0; i--) {
      for (let j = others.length - 1; j >= 0; j--) {
        length[i * columns + j] = words[i] === others[j]
          ? length[(i + 1) * columns + j + 1] + 1
          : Math.max(length[(i + 1) * columns + j], length[i * columns + j + 1]);
      }
    }
    const marks = words.map(() => true);
    let i = 0;
    let j = 0;
    while (i < words.length && j < others.length) {
      if (words[i] === others[j]) {
        marks[i] = false;
        i++;
        j++;
      } else if (length[(i + 1) * columns + j] >= length[i * columns + j + 1]) i++;
      else j++;
    }
    return marks;
  }

  // For each word the class of the translation of an ambiguous word that it belongs to, or "". The words after the
  // first of a longer translation are "more" of it.
  function senses(words, cases, right, wrong) {
    const marks = words.map(() => "");
    const lower = words.map((word) => word.toLowerCase());
    const markForm = (form, kind) => {
      const parts = form.split(" ");
      for (let start = 0; start + parts.length <= lower.length; start++) {
        if (parts.every((part, offset) => lower[start + offset] === part)) {
          marks.fill(`${kind} more`, start, start + parts.length);
          marks[start] = kind;
        }
      }
    };
    for (const one of cases) {
      if (wrong) one.wrong.forEach((form) => markForm(form, "wrong"));
      if (right) one.correct.forEach((form) => markForm(form, "right"));
    }
    return marks;
  }

  const SIGNS = { right: "✓\u00a0", wrong: "✗\u00a0" };

  function marked(words, different, kinds) {
    const line = element("span", "text");
    line.dir = "auto";
    words.forEach((word, place) => {
      if (place) line.append(" ");
      const kind = kinds[place] || (different[place] ? "differs" : "");
      if (!kind) line.append(word);
      else line.append(element("mark", kind, (SIGNS[kind] || "") + word));
    });
    if (!words.length) line.append(element("em", "", "(empty)"));
    return line;
  }

  // Showing

  function split(line) {
    return line.split(/\s+/).filter(Boolean);
  }

  function row(name, line, score) {
    const made = element("div", "row");
    made.append(element("dt", "", name));
    made.append(element("dd", "score", score || ""));
    const text = element("dd", "said");
    text.append(line);
    made.append(text);
    return made;
  }

  function sentence(set, line) {
    const cases = set.casesAt.get(line) || [];
    const item = element("li");
    item.append(element("h3", "", `Sentence ${line + 1}`));
    for (const one of cases) {
      const wanted = `${one.word} → ${one.correct.join(" or ")}${one.rare ? " (rare)" : ""}`;
      item.firstChild.append(" ", element("span", "case", wanted));
    }
    const list = element("dl");
    const source = split(set.source[line]);
    const asked = new Set(cases.map((one) => one.word.toLowerCase()));
    list.append(row("source", marked(source, [], source.map((word) => (asked.has(word.toLowerCase()) ? "asked" : "")))));
    const reference = split(set.reference[line]);
    list.append(row("reference", marked(reference, [], senses(reference, cases, true, false))));
    const mode = at("mark").value;
    const first = split(set.outputs[0][line]);
    set.systems.forEach((name, number) => {
      const words = split(set.outputs[number][line]);
      const other = mode === "reference" ? reference : mode === "first" ? first : words;
      const score = set.scores[number][line];
      const gain = score - set.scores[0][line];
      const shown = score.toFixed(1) + (number ? ` (${gain < 0 ? "−" : "+"}${Math.abs(gain).toFixed(1)})` : "");
      list.append(row(name, marked(words, differing(words, other), senses(words, cases, true, true)), shown));
    });
    item.append(list);
    return item;
  }

  function show() {
    const set = data.sets[state.set];
    const start = state.page * PAGE;
    const lines = state.found.slice(start, start + PAGE);
    const list = at("list");
    list.replaceChildren(...lines.map((line) => sentence(set, line)));
    // Lay out the visible part first, the rest when idle.
    list.className = "fresh";
    const whenIdle = window.requestIdleCallback || setTimeout;
    whenIdle(() => { list.className = ""; });
    const total = state.found.length;
    at("count").textContent = total
      ? `${start + 1}–${start + lines.length} of ${total} sentences; scores: sentence ${data.measure.toUpperCase()}`
      : "No sentence matches.";
    for (const end of ["", "-below"]) {
      at("previous" + end).disabled = state.page === 0;
      at("next" + end).disabled = start + PAGE >= total;
    }
    at("key").hidden = !total;
  }

  function turn(step, below) {
    state.page += step;
    show();
    if (below) at("count").scrollIntoView();
  }

  function chooseSet(number) {
    state.set = number;
    at("set").value = String(number);
    fillForSet();
  }

  // Start

  fill(at("set"), data.sets.map((set, number) => [String(number), set.name]));
  chooseSet(0);
  controls.addEventListener("submit", (event) => event.preventDefault());
  controls.addEventListener("input", (event) => {
    if (event.target.id === "set") chooseSet(Number(event.target.value));
    if (event.target.id === "mark") show();
    else find();
  });
  controls.addEventListener("reset", () => setTimeout(() => {
    chooseSet(state.set);
    find();
  }));
  for (const end of ["", "-below"]) {
    at("previous" + end).addEventListener("click", () => turn(-1, end));
    at("next" + end).addEventListener("click", () => turn(1, end));
  }
  for (const button of document.querySelectorAll("button.word")) {
    button.addEventListener("click", () => {
      chooseSet(data.sets.findIndex((set) => set.name === button.dataset.set));
      at("query").value = "";
      at("word").value = "=" + button.dataset.word;
      find();
      at("translations").scrollIntoView();
      at("word").focus({ preventScroll: true });
    });
  }
  controls.hidden = at("list").hidden = false;
  for (const pager of document.querySelectorAll(".pager")) pager.hidden = false;
  find();
})();
