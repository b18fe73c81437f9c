// Tooltips with the values of a chart, under the pointer or, in a focused chart, with the arrow keys.

const NEAR = 12; // maximum distance of a line's point from the cursor, in the chart's own units

for (const chart of document.querySelectorAll("svg.figure")) makeReadable(chart);

function makeReadable(chart) {
  const lines = [...chart.querySelectorAll("[data-values]")].map(readLine);
  const places = [...new Set(lines.flatMap((line) => line.points.map((point) => point.place)))].sort((a, b) => a - b);
  if (!places.length) return;
  const figure = chart.closest("figure");
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("role", "status");
  figure.append(tip);
  const cursor = svgElement("line", { class: "cursor", y1: 12, y2: chart.viewBox.baseVal.height - 44 });
  const dots = lines.map((line) => svgElement("circle", { class: `dot ${line.style}`, r: 3.5 }));
  let current = -1;

  function show(index) {
    current = index;
    const place = places[index];
    const near = lines.map((line) => nearest(line.points, place));
    const shown = near.filter((point) => point);
    cursor.setAttribute("x1", place);
    cursor.setAttribute("x2", place);
    chart.append(cursor);
    near.forEach((point, number) => {
      if (!point) return dots[number].remove();
      dots[number].setAttribute("cx", point.place);
      dots[number].setAttribute("cy", point.height);
      chart.append(dots[number]);
    });
    const at = shown.find((point) => point.place === place);
    tip.replaceChildren(paragraph(`${chart.dataset.x} ${at.x}`));
    near.forEach((point, number) => {
      if (point) tip.append(paragraph(`${lines[number].name} ${point.y}`, point.x === at.x ? "" : ` (${point.x})`));
    });
    tip.hidden = false;
    const scale = chart.clientWidth / chart.viewBox.baseVal.width;
    const left = place * scale + 12;
    const room = chart.clientWidth - tip.offsetWidth;
    tip.style.left = `${Math.max(0, left <= room ? left : place * scale - 12 - tip.offsetWidth)}px`;
    tip.style.top = `${chart.getBoundingClientRect().top - figure.getBoundingClientRect().top + 4}px`;
  }

  function hide() {
    tip.hidden = true;
    current = -1;
    cursor.remove();
    for (const dot of dots) dot.remove();
  }

  function follow(event) {
    const box = chart.getBoundingClientRect();
    const place = (event.clientX - box.left) * chart.viewBox.baseVal.width / box.width;
    show(closest(places, place));
  }

  chart.tabIndex = 0;
  chart.addEventListener("pointermove", follow);
  chart.addEventListener("pointerdown", follow);
  chart.addEventListener("pointerleave", hide);
  chart.addEventListener("focus", () => { if (current < 0 && chart.matches(":focus-visible")) show(places.length - 1); });
  chart.addEventListener("blur", hide);
  chart.addEventListener("keydown", (event) => {
    const last = places.length - 1;
    const to = { ArrowLeft: current - 1, ArrowRight: current + 1, Home: 0, End: last }[event.key];
    if (event.key === "Escape") hide();
    if (to === undefined) return;
    event.preventDefault();
    show(Math.min(last, Math.max(0, to)));
  });
}

// A line's points: their coordinates, and their values as shown.
function readLine(line) {
  const drawn = line.points
    ? [...line.points].map((point) => [point.x, point.y])
    : [[line.cx.baseVal.value, line.cy.baseVal.value]];
  const values = line.dataset.values.split(" ").map((value) => value.split(","));
  const points = drawn.map(([place, height], number) => ({ place, height, x: values[number][0], y: values[number][1] }));
  return { name: line.dataset.name, style: [...line.classList].find((name) => /^s\d+$/.test(name)), points };
}

function closest(places, place) {
  let best = 0;
  places.forEach((other, number) => {
    if (Math.abs(other - place) < Math.abs(places[best] - place)) best = number;
  });
  return best;
}

function nearest(points, place) {
  const point = points[closest(points.map((one) => one.place), place)];
  return Math.abs(point.place - place) <= NEAR ? point : null;
}

function svgElement(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function paragraph(...texts) {
  const made = document.createElement("p");
  made.append(...texts);
  return made;
}
