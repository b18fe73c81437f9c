// The view of the translations, encoded in the page's address, so that it can be shared and the back button works.

const VIEW = { set: "set", run: "run", q: "query", in: "where", word: "word", sort: "sort", mark: "mark" }; // keys and their controls
const DEFAULTS = { run: "0", q: "", in: "any", word: "", sort: "line", mark: "reference" };
let wasTyping = false;

function addressOf(page) {
  const found = new URLSearchParams();
  for (const [key, id] of Object.entries(VIEW)) {
    const usual = key === "set" ? data.sets[0].name : DEFAULTS[key];
    if (at(id).value !== usual) found.set(key, at(id).value);
  }
  if (at("differing").checked) found.set("differing", "1");
  if (page) found.set("page", String(page + 1));
  const [bare] = location.href.split("#");
  return String(found) ? `${bare}#${found}` : bare;
}

// Letters typed in a row are a single history entry.
function remember(page, isTyping = false) {
  const address = addressOf(page);
  if (address === location.href) return;
  try {
    history[isTyping && wasTyping ? "replaceState" : "pushState"](null, "", address);
  } catch {
    // An embedded page may have no history; everything else still works.
  }
  wasTyping = isTyping;
}

// The view that the address asks for; null if it only names a section of the page.
function askedView() {
  const text = location.hash.slice(1);
  return text && !text.includes("=") ? null : new URLSearchParams(text);
}

function choose(select, value) {
  const known = [...select.options].some((option) => option.value === value);
  select.value = known ? value : select.options[0].value;
}
