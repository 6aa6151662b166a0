// draw.js - what all figures of the report share: elements made of text nodes, numbers as words, colours with
// hatches. Nothing here makes markup or code of data.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

// element("p", {class: "note"}, "text", child...): attributes are set by name, texts become text nodes
function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children.filter(c => c !== null && c !== undefined));
  return e;
}

function shape(name, attributes = {}, ...children) {
  const e = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
}

// --- numbers as words ---

const digits = (value, n = 3) => {
  if (value === null) return "not known";
  if (value === 0) return "0";
  const places = n - 1 - Math.floor(Math.log10(Math.abs(value)) + 1e-9);
  return places > 0 ? value.toFixed(Math.min(places, 9)) : String(Number(value.toPrecision(n)));
};

function scaled(value, steps) {
  for (const [size, unit] of steps) if (Math.abs(value) >= size * 0.9995) return `${digits(value / size)} ${unit}`;
  const [size, unit] = steps[steps.length - 1];
  return `${digits(value / size)} ${unit}`;
}

const seconds = s => s === null ? "not known" : s === 0 ? "0 s" : scaled(s, [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]]);
const bytes = b => b === null ? "not known" : b === 0 ? "0 B" : scaled(b, [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]);
// no share that is not all becomes 100%
const percent = x => x === null ? "not known" : x === 0 || x === 1 ? `${100 * x}%` : x < 0.001 ? "<0.1%" : x > 0.999 && x < 1 ? ">99.9%" :
  `${(100 * x).toFixed(x < 0.0995 || x >= 0.995 ? 1 : 0)}%`;

// --- colours with hatches, so that figures can be read in grey: Okabe and Ito 2008, and lines on a tile of 6 x 6 ---

const INKS = {
  load: ["#bbbbbb", "M1 1h1M4 4h1"],
  pack: ["#f0e442", "M0 3H6M3 0V6"],
  forward: ["#56b4e9", ""],
  backward: ["#e69f00", "M0 6L6 0"],
  optimizer: ["#009e73", "M0 3H6"],
  transfer: ["#cc79a7", "M3 0V6"],
  reduce: ["#d55e00", "M0 0L6 6"],
  waiting: ["#ffffff", "M1 3h2"],
  weights: ["#56b4e9", ""],
  gradients: ["#e69f00", "M0 6L6 0"],
  optimiser: ["#009e73", "M0 3H6"],
  activations: ["#f0e442", "M1 1h1M4 4h1"],
  "halos and messages": ["#cc79a7", "M3 0V6"],
  workspace: ["#bbbbbb", "M0 3H6M3 0V6"],
  "gaps between buffers": ["#ffffff", "M1 3h2"],
  measured: ["#009e73", ""],
  paper: ["#56b4e9", "M0 6L6 0"],
  datasheet: ["#f0e442", "M0 3H6"],
  guess: ["#d55e00", "M0 3H6M3 0V6"],
};
const HATCH = "#00000088";
const ink = name => INKS[name] || ["#999999", ""];

// The pattern of a name for a canvas.
function canvasInk(context, name) {
  const [colour, hatch] = ink(name);
  const scale = window.devicePixelRatio || 1;
  const tile = document.createElement("canvas");
  tile.width = tile.height = Math.round(6 * scale);
  const c = tile.getContext("2d");
  c.scale(tile.width / 6, tile.height / 6);
  c.fillStyle = colour;
  c.fillRect(0, 0, 6, 6);
  c.strokeStyle = HATCH;
  c.lineWidth = 0.8;
  if (hatch) c.stroke(new Path2D(hatch));
  const pattern = context.createPattern(tile, "repeat");
  pattern.setTransform(new DOMMatrix().scale(1 / scale));
  return pattern;
}

let patterns = 0;
// A filled rectangle in SVG; each brings its own pattern, which needs no other element of the page.
function inked(name, x, y, width, height, title) {
  const [colour, hatch] = ink(name);
  const id = `ink${patterns++}`;
  const g = shape("g");
  g.append(shape("pattern", {id, width: 6, height: 6, patternUnits: "userSpaceOnUse"},
    shape("rect", {width: 6, height: 6, fill: colour}),
    shape("path", {d: hatch || "M0 0", stroke: HATCH, "stroke-width": 0.8, fill: "none"})));
  const box = shape("rect", {x, y, width, height, fill: `url(#${id})`, stroke: "#444444", "stroke-width": 0.6});
  if (title) box.append(shape("title", {}, title));
  g.append(box);
  return g;
}

function key(names) {
  return element("ul", {class: "key"}, ...names.map(name => element("li", {},
    shape("svg", {viewBox: "0 0 22 14"}, inked(name, 1, 1, 20, 12)), name)));
}

// --- sections ---

// A command line breaks between its words alone, where they fit.
function command(text, label = "Again:") {
  const words = text.split(" ").flatMap((word, i) => [i ? " " : "", element("span", {}, word)]);
  return element("p", {class: "command"}, `${label} `, element("code", {}, ...words));
}

function absent(section, why, text) {
  section.append(element("p", {}, why), command(text, "This makes it:"));
}

// Calls draw(width) now and whenever the width of `e` changes.
function drawWide(e, draw) {
  let width = 0;
  const again = () => {
    const now = Math.floor(e.clientWidth);
    if (now > 0 && now !== width) draw(width = now);
  };
  new ResizeObserver(again).observe(e);
  again();
}
