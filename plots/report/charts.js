// charts.js - the report's charts in SVG: points and lines over two axes, and bars in parts.

const MARKS = {
  circle: r => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
  square: r => `M${-r} ${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
  triangle: r => `M0 ${-1.2 * r}L${1.2 * r} ${r}H${-1.2 * r}z`,
  diamond: r => `M0 ${-1.4 * r}L${1.4 * r} 0L0 ${1.4 * r}L${-1.4 * r} 0z`,
  cross: r => `M${-r} ${-r}L${r} ${r}M${-r} ${r}L${r} ${-r}`,
  plus: r => `M${-r} 0H${r}M0 ${-r}V${r}`,
  drop: r => `M0 ${1.2 * r}L${1.2 * r} ${-r}H${-1.2 * r}z`,
};
const MARK_NAMES = Object.keys(MARKS);
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#a0527d", "#7a5c00", "#333333", "#56b4e9"];

function mark(name, x, y, colour, r = 4, title = "") {
  const open = name === "cross" || name === "plus";
  const e = shape("path", {d: MARKS[name](r), transform: `translate(${x} ${y})`, fill: open ? "none" : colour,
    stroke: open ? colour : "#ffffff", "stroke-width": open ? 1.8 : 0.6});
  if (title) e.append(shape("title", {}, title));
  return e;
}

// Values of an axis's ticks: 1, 2, 5 times powers of ten; on a logarithmic axis as many as have room. One of less than a
// decade has those of a linear one.
function ticksOf(low, high, most, log) {
  const ticks = [];
  if (log && high > 10 * low) {
    const decades = Math.log10(high / low);
    const heads = decades * 3 <= most ? [1, 2, 5] : [1];
    const every = Math.max(1, Math.ceil(decades / most));
    for (let d = Math.floor(Math.log10(low)); d <= Math.ceil(Math.log10(high)); d++) {
      if (heads.length === 1 && d % every) continue;
      for (const h of heads) ticks.push(h * 10 ** d);
    }
  } else {
    const raw = (high - low) / most;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map(h => h * power).find(s => s >= raw * 0.999);
    for (let k = Math.ceil(low / step); k * step <= high * (1 + 1e-9); k++) ticks.push(k * step);
  }
  return ticks.filter(t => t >= low * (1 - 1e-9) && t <= high * (1 + 1e-9));
}

// {label, log, format, values, ticks}: the axis over these values, with a margin
function axisOf(a) {
  let low = Math.min(...a.values), high = Math.max(...a.values);
  if (a.log) {
    const room = Math.max((high / low) ** 0.06, 1.15);
    return {...a, low: low / room, high: high * room};
  }
  return {...a, low: 0, high: high * 1.08 || 1};
}

const placeOf = (a, from, to) => v => {
  const f = a.log ? Math.log(v / a.low) / Math.log(a.high / a.low) : (v - a.low) / (a.high - a.low);
  return from + f * (to - from);
};

// The ticks of an axis that are `least` pixels apart: linear ones crowd at the end of a logarithmic axis.
function apart(a, place, most, least) {
  const kept = [];
  for (const t of a.ticks || ticksOf(a.low, a.high, most, a.log)) {
    if (!kept.length || Math.abs(place(t) - place(kept[kept.length - 1])) >= least) kept.push(t);
  }
  return kept;
}

function grid(svg, box, x, y, px, py) {
  for (const t of apart(y, py, Math.max(2, Math.floor((box.bottom - box.top) / 40)), 22)) {
    svg.append(shape("line", {class: "grid", x1: box.left, x2: box.right, y1: py(t), y2: py(t)}),
      shape("text", {x: box.left - 8, y: py(t) + 4, "text-anchor": "end"}, y.format(t)));
  }
  for (const t of apart(x, px, Math.max(2, Math.floor((box.right - box.left) / 80)), 62)) {
    svg.append(shape("line", {class: "grid", y1: box.top, y2: box.bottom, x1: px(t), x2: px(t)}),
      shape("text", {x: px(t), y: box.bottom + 18, "text-anchor": "middle"}, x.format(t)));
  }
  svg.append(shape("rect", {class: "axis", x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top}),
    shape("text", {x: (box.left + box.right) / 2, y: box.bottom + 38, "text-anchor": "middle"}, x.label),
    shape("text", {x: box.left, y: 14, class: "faint"}, y.label));
}

// series: [{name, mark, colour, line: bool, dash, points: [{x, y, low, high, title}]}]. The key lies below, off the data.
function chart(place, x, y, series, height = 360) {
  const drawing = element("div");
  const xAxis = axisOf(x), yAxis = axisOf(y);
  place.append(element("div", {class: "chart"}, drawing, element("ul", {class: "key"}, ...series.map(s => element("li", {},
    shape("svg", {viewBox: "0 0 22 14"},
      ...(s.line ? [shape("line", {x1: 0, x2: 22, y1: 7, y2: 7, stroke: s.colour, "stroke-width": 1.6, "stroke-dasharray": s.dash || "none"})] : []),
      ...(s.mark ? [mark(s.mark, 11, 7, s.colour)] : [])), s.name)))));
  drawWide(drawing, width => {
    const box = {left: 78, right: width - 24, top: 26, bottom: height - 48};
    const svg = shape("svg", {viewBox: `0 0 ${width} ${height}`, role: "img"});
    const px = placeOf(xAxis, box.left, box.right), py = placeOf(yAxis, box.bottom, box.top);
    svg.style.height = `${height}px`;
    grid(svg, box, xAxis, yAxis, px, py);
    for (const s of series) {
      if (s.line) svg.append(shape("polyline", {points: s.points.map(p => `${px(p.x)},${py(p.y)}`).join(" "), fill: "none",
        stroke: s.colour, "stroke-width": 1.6, "stroke-dasharray": s.dash || "none"}));
      for (const p of s.points) {
        if (p.low && p.high) svg.append(shape("line", {x1: px(p.x), x2: px(p.x), y1: py(p.low), y2: py(p.high), stroke: s.colour}));
        if (s.mark) svg.append(mark(s.mark, px(p.x), py(p.y), s.colour, s.size || 4, p.title));
      }
    }
    drawing.replaceChildren(svg);
  });
}

// A bar in parts: [{name, value}], of `most` at full width; a line at `limit`, where it is within.
function bar(place, parts, most, limit) {
  drawWide(place, width => {
    const svg = shape("svg", {viewBox: `0 0 ${width} 22`, role: "img"});
    const end = width - 4;
    svg.style.height = "22px";
    let at = 0;
    for (const p of parts) {
      const w = p.value / most * end;
      if (w > 0) svg.append(inked(p.name, at, 3, Math.max(w, 0.6), 16, `${p.name}: ${p.text}`));
      at += w;
    }
    if (limit && limit <= most * 1.0001) {
      svg.append(shape("line", {class: "capacity", x1: limit / most * end, x2: limit / most * end, y1: 0, y2: 22}));
    }
    place.replaceChildren(svg);
  });
}
