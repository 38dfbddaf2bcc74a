"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Tables sort by a click on a title: best first, then the other way round.
  for (const table of $$("table.sortable")) {
    const body = $("tbody", table);
    const value = (row, column) => {
      const cell = row.cells[column];
      const text = cell.dataset.value ?? cell.textContent.trim();
      return text !== "" && !Number.isNaN(Number(text)) ? Number(text) : text;
    };
    $$("thead th", table).forEach((title, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...title.childNodes);
      title.append(button);
      button.addEventListener("click", () => {
        const up = title.getAttribute("aria-sort") === "descending" || (title.ariaSort === null && column < 2);
        $$("th", title.parentNode).forEach((other) => other.removeAttribute("aria-sort"));
        title.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...body.rows].sort((a, b) => {
          const x = value(a, column), y = value(b, column);
          const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
          return up ? order : -order;
        });
        body.append(...rows);
      });
    });
  }

  // The legend brings models out in the curves.
  const chips = $$(".legend button");
  const chosen = new Set();
  const lines = $$("svg g[class]");
  for (const chip of chips) {
    chip.addEventListener("click", () => {
      const key = chip.dataset.model;
      if (!chosen.delete(key)) chosen.add(key);
      for (const other of chips) other.setAttribute("aria-pressed", String(chosen.has(other.dataset.model)));
      for (const line of lines) {
        line.style.opacity = !chosen.size || chosen.has(line.getAttribute("class").slice("model".length)) ? "" : "0.12";
      }
    });
  }

  // Query by query: two models of choice.
  const data = JSON.parse($("#data").textContent);
  const figure = $("#win-loss");
  if (figure && data.first.length === 2) {
    const [first, second, metric] = [$("#model-a"), $("#model-b"), $("#metric")];
    for (const select of [first, second]) for (const name of data.models) select.add(new Option(name));
    for (const name of data.metrics) metric.add(new Option(name));
    [first.value, second.value] = data.first;
    const draw = () => winLoss(figure, data, data.models.indexOf(first.value), data.models.indexOf(second.value), metric.value);
    for (const select of [first, second, metric]) select.addEventListener("change", draw);
    draw();
    let width = figure.clientWidth;
    new ResizeObserver(() => {
      if (Math.abs(figure.clientWidth - width) > 1) {
        width = figure.clientWidth;
        requestAnimationFrame(draw);
      }
    }).observe(figure);
  }

  function winLoss(figure, data, a, b, metric) {
    const x = data.values[metric][a], y = data.values[metric][b];
    const counted = x.map((_, q) => q).filter((q) => x[q] !== null && y[q] !== null);
    const order = counted.sort((p, q) => (x[q] - y[q]) - (x[p] - y[p]));
    const difference = order.map((q) => x[q] - y[q]);
    const wins = difference.filter((d) => d > 1e-9).length, losses = difference.filter((d) => d < -1e-9).length;
    const mean = difference.reduce((sum, d) => sum + d, 0) / difference.length;
    const score = $("#score");
    score.replaceChildren();
    const say = (text, bold) => score.append(bold ? Object.assign(document.createElement("b"), { textContent: text }) : text);
    say(data.models[a], true);
    say(" is better in ");
    say(String(wins), true);
    say(", worse in ");
    say(String(losses), true);
    say(` and equal in ${difference.length - wins - losses} of ${difference.length} queries; mean difference `);
    say((mean >= 0 ? "+" : "−") + Math.abs(mean).toFixed(4), true);

    const width = figure.clientWidth, height = Math.min(300, Math.max(200, 0.3 * width));
    const left = 40, right = 4, top = 8, bottom = 22;
    const largest = Math.max(0.05, ...difference.map(Math.abs));
    const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1].find((s) => largest / s <= 3) ?? 1;
    const across = (i) => left + (i / difference.length) * (width - left - right);
    const down = (d) => top + (1 - (d + largest) / (2 * largest)) * (height - top - bottom);
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", style: `height:${height}px` });
    svg.setAttribute("aria-label", score.textContent);
    for (let k = -Math.floor(largest / step); k <= largest / step; k += 1) {
      const at = down(k * step);
      svg.append(element("line", { x1: left, x2: width - right, y1: at, y2: at, stroke: k ? "var(--grid)" : "var(--muted)" }));
      const label = element("text", { x: left - 6, y: at + 4, "text-anchor": "end", fill: "var(--muted)", "font-size": 11 });
      label.textContent = (k > 0 ? "+" : k < 0 ? "−" : "") + Math.abs(k * step).toFixed(step < 0.1 ? 2 : step === 0.25 ? 2 : 1);
      svg.append(label);
    }
    const area = (keep) => {
      let path = `M${across(0)},${down(0)}`;
      difference.forEach((d, i) => {
        const at = down(keep(d) ? d : 0);
        path += `L${across(i)},${at}L${across(i + 1)},${at}`;
      });
      return `${path}L${across(difference.length)},${down(0)}Z`;
    };
    svg.append(element("path", { d: area((d) => d > 0), fill: "var(--good)" }));
    svg.append(element("path", { d: area((d) => d < 0), fill: "var(--bad)" }));
    const mark = element("line", { y1: top, y2: height - bottom, stroke: "var(--ink)", visibility: "hidden" });
    svg.append(mark);
    const [winner, loser] = width > 560 ? [data.models[a], data.models[b]] : ["first model", "second model"];
    for (const [text, anchor, at, fill] of [[`${winner} better`, "start", left, "var(--good)"], [`${loser} better`, "end", width - right, "var(--bad)"]]) {
      const label = element("text", { x: at, y: height - 5, "text-anchor": anchor, fill, "font-size": 12 });
      label.textContent = text;
      svg.append(label);
    }
    const note = $("#query"), rest = "Each bar is a test query, sorted by the difference between the two models.";
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const i = Math.floor(((event.clientX - box.left - left) / (width - left - right)) * difference.length);
      if (i < 0 || i >= difference.length) return;
      const q = order[i];
      mark.setAttribute("x1", across(i + 0.5));
      mark.setAttribute("x2", across(i + 0.5));
      mark.setAttribute("visibility", "visible");
      note.textContent = `Query ${data.qid[q]}, ${data.documents[q]} documents: ${data.models[a]} ${x[q].toFixed(4)}, ${data.models[b]} ${y[q].toFixed(4)}`;
    });
    svg.addEventListener("pointerleave", () => {
      mark.setAttribute("visibility", "hidden");
      note.textContent = rest;
    });
    note.textContent = rest;
    figure.replaceChildren(svg);
  }

  function element(name, attributes) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  addEventListener("beforeprint", () => $$("details").forEach((each) => { each.open = true; }));
})();
