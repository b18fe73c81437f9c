// Mark words of a translation that differ or translate an ambiguous word. Text is only inserted as text, never as HTML.

const SIGNS = { right: "✓\u00a0", wrong: "✗\u00a0" };

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function split(line) {
  return line.split(/\s+/).filter(Boolean);
}

// Which of `words` are not in their longest common subsequence with `others`.
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

// For each word, the class of the ambiguous word's translation that it is part of, or "". In a longer translation, all
// words but the first are also "more".
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
