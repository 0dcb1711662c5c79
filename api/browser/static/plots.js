// Draws each figure with `data-plot` by Observable Plot. Colours are the variables of the style sheet, so that plots
// follow the light and the dark page. Without this script a figure has its caption and its words.
(() => {
  "use strict";
  const colours = { head: "var(--head)", long_tail: "var(--tail)", passed: "var(--link)", stopped: "var(--edge)" };
  const colour = (kind) => colours[kind] ?? "var(--ink)";
  const style = { fontSize: "11px", color: "var(--quiet)" }; // of axes; set by script, which the page's policy allows
  const rounded = (value) => Number(value.toPrecision(3)).toLocaleString("en");
  const LETTER = 7.3; // width of a letter in the graph's font, 12 px monospace
  const ROW = 34; // height of a graph's row

  const histogram = ({ low, high, series }, room) => {
    const marks = [];
    const edge = (place, bins) => low + (place * (high - low)) / bins;
    for (const { kind, label, count, mean, counts } of series) {
      if (mean === null) continue;
      const bars = counts.map((number, place) => ({
        number,
        low: edge(place, counts.length),
        high: edge(place + 1, counts.length),
        height: number / count,
      }));
      const words = (bar) => `${label}: ${bar.number} from ${rounded(bar.low)} to ${rounded(bar.high)}`;
      const shape = { x1: "low", x2: "high", y: "height", fill: colour(kind), fillOpacity: 0.35, stroke: colour(kind) };
      marks.push(Plot.rectY(bars.filter((bar) => bar.height > 0), { ...shape, title: words, inset: 0.5 }));
      marks.push(Plot.ruleX([mean], { stroke: colour(kind), strokeWidth: 1.5, strokeDasharray: "5 3" }));
    }
    const x = { domain: [low, high], label: null };
    const y = { label: null, ticks: 3, tickFormat: "~%" };
    return Plot.plot({ width: Math.min(504, room), height: 140, marginLeft: 44, style, x, y, marks: [...marks, Plot.ruleY([0])] });
  };

  const dots = ({ dots: drawn }, room) => {
    const kinds = [...new Set(drawn.map((dot) => dot.kind))];
    const rows = kinds.map((kind) => {
      const own = drawn.filter((dot) => dot.kind === kind);
      const place = { x: "score", fy: "kind", r: 3, fill: colour(kind), fillOpacity: 0.7 };
      return Plot.dot(own, Plot.dodgeY("middle", { ...place, href: "href", title: (dot) => `${dot.text} ${rounded(dot.score)}` }));
    });
    const name = (kind) => kind.replace("_", " ");
    return Plot.plot({
      width: Math.min(720, room), height: 60 + 110 * kinds.length, marginRight: 20, marginLeft: 66, style,
      x: { label: null, grid: true, nice: true }, fy: { label: null, tickFormat: name }, marks: rows,
    });
  };

  const graph = ({ nodes, edges }) => {
    const columns = 1 + Math.max(...nodes.map((node) => node.column));
    const sizes = Array(columns).fill(0);
    const widths = Array(columns).fill(0);
    for (const node of nodes) {
      node.place = sizes[node.column]++;
      widths[node.column] = Math.max(widths[node.column], node.text.length * LETTER);
    }
    const rows = Math.max(...sizes);
    for (const node of nodes) node.y = (node.place + 0.5) / sizes[node.column];
    const lines = edges.map(([start, end]) => ({ start: nodes[start], end: nodes[end] }));
    const labels = (column, options) => {
      const own = nodes.filter((node) => node.column === column);
      const style = { x: "column", y: "y", text: "text", fontSize: 12, fontFamily: "ui-monospace, monospace" };
      const halo = { stroke: "var(--ground)", strokeWidth: 4, fill: "currentColor" };
      const linked = own.some((node) => node.href) ? { href: (node) => node.href || null, fill: "var(--link)" } : {};
      const [bold, plain] = [own.filter((node) => node.kind === "conclusion"), own.filter((node) => node.kind !== "conclusion")];
      return [[plain, 400], [bold, 700]].map(([some, fontWeight]) =>
        Plot.text(some, { ...style, ...halo, ...linked, ...options, fontWeight }));
    };
    const last = columns - 1;
    const marks = [
      Plot.link(lines, {
        x1: (line) => line.start.column, y1: (line) => line.start.y, x2: (line) => line.end.column, y2: (line) => line.end.y,
        curve: "bump-x", stroke: "var(--quiet)", strokeOpacity: 0.6,
      }),
      // A filled dot has a value to find or is a condition; an open one is generic or mere information.
      Plot.dot(nodes, {
        x: "column", y: "y", r: 4, stroke: "var(--quiet)", strokeWidth: 1.5,
        fill: (node) => ["generic", "information"].includes(node.kind) ? "var(--ground)" : "var(--quiet)",
      }),
      ...labels(0, { textAnchor: "end", dx: -9 }),
      ...Array.from({ length: Math.max(0, last - 1) }, (_, place) => labels(place + 1, { dy: -13 })).flat(),
      ...labels(last, { textAnchor: "start", dx: 9 }),
    ];
    const [marginLeft, marginRight] = [widths[0] + 14, widths[last] + 14];
    const between = widths.slice(1, last).reduce((sum, width) => sum + width, 110 * last);
    return Plot.plot({
      width: marginLeft + between + marginRight, height: ROW * rows + 8, marginLeft, marginRight, marginTop: 4, marginBottom: 4,
      x: { axis: null, domain: [0, last] }, y: { axis: null, domain: [1, 0] }, color: { type: "identity" }, marks,
    });
  };

  const funnel = ({ bars }, room) => {
    const rows = bars.flatMap(([gate, accepted, rejected]) => [
      { gate, kind: "passed", count: accepted, words: `${gate}: ${accepted} accepted` },
      { gate, kind: "stopped", count: rejected, words: `${gate}: ${rejected} rejected` },
    ]);
    const mark = Plot.barX(rows, { x: "count", y: "gate", fill: (row) => colour(row.kind), title: "words" });
    const marginLeft = 20 + LETTER * Math.max(...bars.map(([gate]) => gate.length));
    const most = Math.max(...bars.map(([, accepted, rejected]) => accepted + rejected));
    return Plot.plot({
      width: Math.min(504, room), height: 40 + 28 * bars.length, marginLeft, style, color: { type: "identity" },
      x: { label: null, ticks: Math.min(5, most) }, y: { label: null, domain: bars.map(([gate]) => gate) }, marks: [mark],
    });
  };

  const forms = { histogram, dots, graph, funnel };
  let number = 0;
  const draw = (figure) => {
    number += 1;
    const values = JSON.parse(figure.dataset.plot);
    const drawing = forms[values.form](values, figure.clientWidth || 504);
    drawing.querySelector("style").remove(); // the page's policy allows no other style; style.css has these lines
    // The library names groups of shapes for screen readers, which may not be done without a role.
    for (const group of drawing.querySelectorAll("g[aria-label]")) group.removeAttribute("aria-label");
    const parts = ["title", "desc"].map((name) => {
      const part = document.createElementNS("http://www.w3.org/2000/svg", name);
      part.id = `plot-${name}-${number}`;
      part.textContent = figure.dataset[name];
      return part;
    });
    drawing.prepend(...parts);
    // A plot with links is a group of them; one without is a picture.
    const links = drawing.querySelectorAll("a");
    drawing.setAttribute("role", links.length ? "group" : "img");
    drawing.setAttribute("aria-labelledby", parts[0].id);
    drawing.setAttribute("aria-describedby", parts[1].id);
    if (values.form === "dots") for (const link of links) link.setAttribute("tabindex", "-1"); // the page lists them, too
    figure.querySelector(".drawn").append(drawing);
  };
  const drawAll = () => [...document.querySelectorAll("[data-plot]")].filter((figure) => !figure.querySelector("svg")).forEach(draw);
  document.addEventListener("hapax:plots", drawAll); // a page that has got new figures asks for them
  drawAll();
})();
