// The browser of translations: filters, sorts and shows sentences.

const PAGE = 20;
const data = JSON.parse(document.getElementById("data").textContent);
const controls = at("controls");
const state = { set: data.sets[0], found: [], page: 0 };

// Precomputed, so that filtering only searches strings.
for (const set of data.sets) {
  set.low = { source: set.source.map(searchable), reference: set.reference.map(searchable) };
  set.casesAt = new Map();
  for (const one of set.cases) {
    if (!set.casesAt.has(one.line)) set.casesAt.set(one.line, []);
    set.casesAt.get(one.line).push(one);
  }
}

function at(id) {
  return document.getElementById(id);
}

function searchable(line) {
  return ` ${split(line.toLowerCase()).join(" ")} `;
}

function fill(select, options) {
  const before = select.value;
  select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
  choose(select, before);
}

// Controls

// Take the outputs, scores and labels of one run; of a system with fewer runs, its last one.
function chooseRun(set, number) {
  const pick = (runs) => runs[Math.min(number, runs.length - 1)];
  set.shown = set.outputs.map(pick);
  set.points = set.scores.map(pick);
  set.low.outputs = set.shown.map((lines) => lines.map(searchable));
  for (const one of set.cases) one.picked = one.labels.map(pick);
}

function fillForSet() {
  const set = state.set;
  fill(at("run"), set.runs.map((name, number) => [String(number), name]));
  at("of-run").hidden = set.runs.length < 2;
  chooseRun(set, Number(at("run").value));
  const first = set.systems[0];
  fill(at("where"), [
    ["any", "any text"], ["source", "the source"], ["reference", "the reference"],
    ...set.systems.map((name) => [`system:${name}`, name]),
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
  const others = set.systems.filter((name, number) => number && !set.identical[number]);
  fill(at("sort"), [
    ["line", "line number"],
    ...others.flatMap((name) => [
      [`gain:${name}`, `largest gain of ${name} over ${first}`],
      [`loss:${name}`, `largest loss of ${name} against ${first}`],
    ]),
    ...set.systems.filter((name, number) => !set.identical[number])
      .map((name) => [`score:${name}`, `score of ${name}, lowest first`]),
  ]);
  at("differing").disabled = set.systems.length < 2;
}

function chooseSet(name) {
  state.set = data.sets.find((set) => set.name === name) || data.sets[0];
  at("set").value = state.set.name;
  fillForSet();
}

// Filtering and sorting

function textsOf(set, line, where) {
  if (where === "source" || where === "reference") return [set.low[where][line]];
  if (where !== "any") return [set.low.outputs[set.systems.indexOf(where.slice("system:".length))][line]];
  return [set.low.source[line], set.low.reference[line], ...set.low.outputs.map((lines) => lines[line])];
}

// Word prefixes, and quoted phrases of whole words; a phrase without its closing quote is still being typed.
function termsOf(query) {
  const found = [];
  for (const [, phrase, end, word] of query.toLowerCase().replace(/[“”„]/g, '"').matchAll(/"([^"]*)("?)|([^\s"]+)/g)) {
    if (word) found.push(` ${word}`);
    else if (phrase.trim()) found.push(` ${split(phrase).join(" ")}${end ? " " : ""}`);
  }
  return found;
}

function wantedCase(one, choice) {
  if (choice === "*any") return true;
  if (choice === "*rare") return one.rare;
  if (choice === "*split") return one.picked.some((label) => label !== one.picked[0]);
  return one.word === choice.slice(1);
}

function find(page = 0) {
  const set = state.set;
  const terms = termsOf(at("query").value);
  const where = at("where").value;
  const choice = at("word").value;
  const differs = at("differing").checked;
  const found = [];
  for (let line = 0; line < set.source.length; line++) {
    if (choice && !(set.casesAt.get(line) || []).some((one) => wantedCase(one, choice))) continue;
    if (differs && set.shown.every((lines) => lines[line] === set.shown[0][line])) continue;
    if (terms.length) {
      const texts = textsOf(set, line, where);
      if (!terms.every((term) => texts.some((text) => text.includes(term)))) continue;
    }
    found.push(line);
  }
  const value = sortValue(set, at("sort").value);
  if (value) found.sort((a, b) => value(a) - value(b) || a - b);
  state.found = found;
  state.page = Math.max(0, Math.min(page, Math.ceil(found.length / PAGE) - 1)) || 0;
  show();
}

function sortValue(set, sort) {
  const [kind] = sort.split(":");
  const number = set.systems.indexOf(sort.slice(kind.length + 1));
  if (kind === "line") return null;
  if (kind === "score") return (line) => set.points[number][line];
  const sign = kind === "gain" ? -1 : 1;
  return (line) => sign * (set.points[number][line] - set.points[0][line]);
}

// Showing

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
  const first = split(set.shown[0][line]);
  set.systems.forEach((name, number) => {
    if (set.identical[number]) {
      list.append(row(name, element("em", "", `identical to ${set.systems[0]} in every sentence`)));
      return;
    }
    const words = split(set.shown[number][line]);
    const other = mode === "reference" ? reference : mode === "first" ? first : words;
    const score = set.points[number][line];
    const gain = score - set.points[0][line];
    const shown = score.toFixed(1) + (number ? ` (${gain < 0 ? "−" : "+"}${Math.abs(gain).toFixed(1)})` : "");
    list.append(row(name, marked(words, differing(words, other), senses(words, cases, true, true)), shown));
  });
  item.append(list);
  return item;
}

function show() {
  const start = state.page * PAGE;
  const lines = state.found.slice(start, start + PAGE);
  const list = at("list");
  list.replaceChildren(...lines.map((line) => sentence(state.set, line)));
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
  remember(state.page);
  if (below) at("count").scrollIntoView();
}

function showAsked() {
  const asked = askedView();
  if (!asked) return;
  chooseSet(asked.get("set"));
  choose(at("run"), asked.get("run"));
  chooseRun(state.set, Number(at("run").value));
  at("query").value = asked.get("q") || "";
  for (const key of ["in", "word", "sort", "mark"]) choose(at(VIEW[key]), asked.get(key));
  at("differing").checked = asked.has("differing");
  find((parseInt(asked.get("page"), 10) || 1) - 1);
}

// Start

fill(at("set"), data.sets.map((set) => [set.name, set.name]));
chooseSet(data.sets[0].name);
controls.addEventListener("submit", (event) => event.preventDefault());
controls.addEventListener("input", (event) => {
  if (event.target.id === "set") chooseSet(event.target.value);
  if (event.target.id === "run") chooseRun(state.set, Number(event.target.value));
  if (event.target.id === "mark") show();
  else find();
  remember(state.page, event.target.id === "query");
});
controls.addEventListener("reset", () => setTimeout(() => {
  chooseSet(state.set.name);
  find();
  remember(0);
}));
for (const end of ["", "-below"]) {
  at("previous" + end).addEventListener("click", () => turn(-1, end));
  at("next" + end).addEventListener("click", () => turn(1, end));
}
for (const button of document.querySelectorAll("button.word")) {
  button.addEventListener("click", () => {
    chooseSet(button.dataset.set);
    at("query").value = "";
    at("word").value = "=" + button.dataset.word;
    find();
    remember(0);
    at("translations").scrollIntoView();
    at("word").focus({ preventScroll: true });
  });
}
controls.hidden = at("list").hidden = false;
for (const pager of document.querySelectorAll(".pager")) pager.hidden = false;
window.addEventListener("popstate", showAsked);
find();
// The list has only now the height to scroll to.
if (location.hash.includes("=")) {
  showAsked();
  at("translations").scrollIntoView();
} else if (location.hash) {
  at(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}
