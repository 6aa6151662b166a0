// page.js - fills the report's sections from the data block, and runs last.

const numberCell = (text, ...below) => element("td", {class: "number"}, text, ...below.map(b => element("small", {}, b)));

function table(heads, rows, kind = "") {
  return element("table", {class: kind}, element("thead", {}, element("tr", {}, ...heads.map(([name, numeric]) =>
    element("th", numeric ? {class: "number"} : {}, name)))), element("tbody", {}, ...rows));
}

function showAnswer(section, d) {
  section.append(element("p", {class: "sentence"}, d.sentence));
  if (d.measured) section.append(element("p", {class: "sentence"}, d.measured));
  section.append(command(d.command, "The plan in full:"));
}

// A strategy may break after its commas.
const strategyText = text => text.split(",").flatMap((word, i, all) => i + 1 < all.length ? [`${word},`, element("wbr")] : [word]);

const strategyCell = (text, ...below) => element("td", {class: "strategy"}, ...strategyText(text), ...below);

// What lies beside each other where there is room.
function beside(section) {
  const place = element("div", {class: "beside"});
  section.append(place);
  return place;
}

// --- candidates ---

function candidateRow(c, chosen) {
  const interval = c.low_s === null ? "not known" : `${seconds(c.low_s)} to ${seconds(c.high_s)}`;
  const note = c.rejected ? `${c.rejected.code}: ${c.rejected.limit}` : c.note;
  const cells = c.rejected ? [numberCell("impossible"), numberCell("-"), numberCell("-"), numberCell("-"), numberCell("-")] : [
    numberCell(seconds(c.step_s), interval, ...(c.measured_s === null ? [] : [`ran: ${seconds(c.measured_s)}`])),
    numberCell(digits(c.images_per_s)), numberCell(bytes(c.memory_bytes)),
    numberCell(percent(c.bubble), `${percent(c.exposed_comm)} comm.`), numberCell(percent(c.measured_share))];
  return element("tr", chosen ? {class: "chosen"} : {}, numberCell(c.number === null ? "-" : `${c.tie ? "~" : ""}${c.number}`),
    strategyCell(c.strategy, element("small", {}, c.family), ...(note ? [element("small", {}, note)] : [])),
    numberCell(String(c.devices)), ...cells);
}

function showCandidates(section, d, rate) {
  section.append(table([["#", true], ["strategy, its family, what bounds it"], ["devices", true], ["step, 90% interval", true],
    [rate, true], ["memory", true], ["bubble", true], ["measured", true]],
  d.rows.map((c, i) => candidateRow(c, i === d.chosen))),
  element("p", {class: "note"}, `One row per family on the plan's number of devices, the best on others; of ${d.all} candidate${d.all === 1 ? "" : "s"}. Plain data parallelism always. ` +
    "Memory is that of the fullest rank; bubble and exposed communication are shares of the step; measured is the share of the " +
    "prediction that rests on measurements. ~ cannot be told from the one before it by these predictions."),
  command(d.command, "Why one lost:"));
}

// --- timeline ---

function timelineNotes(d) {
  const notes = ["Click the chart to zoom with the wheel (or Ctrl and the wheel anywhere), drag to move; keys + - 0 and arrows. " +
    "The upper half of a row is its compute queue, below are sends, receives and collectives. White with dots is waiting."];
  if (d.sides.some(s => s.rows.some(r => r.ranks > 1))) notes.push("Ranks that do the same share a row.");
  for (const s of d.sides) {
    if (s.more_rows) notes.push(`${s.name}: ${s.more_rows} more kinds of ranks have no row; those shown are evenly spaced.`);
    if (s.dropped) notes.push(`${s.name}: ${s.dropped} tasks shorter than ${seconds(s.shortest_ns * 1e-9)} are left out, ${percent(s.dropped_share)} of the tasks' time.`);
  }
  return notes.join(" ");
}

function showTimeline(section, d) {
  if (d.absent) return absent(section, d.absent, d.command);
  const shown = new Set(d.sides.flatMap(s => s.tasks.map(t => t[TASK.phase])));
  const place = element("div");
  section.append(place);
  new Timeline(place, d);
  section.append(key([...d.phases.filter((_, i) => shown.has(i)), "waiting"]), element("p", {class: "note"}, timelineNotes(d)),
    command(d.command));
  if (d.to_measure) section.append(command(d.to_measure, "To have the measurement below it:"));
  return undefined;
}

// --- memory ---

function showMemory(section, d) {
  const fullest = Math.max(...d.bars.map(b => Math.max(b.planned, b.observed || 0)));
  const near = d.capacity !== null && d.capacity <= 4 * fullest;
  const most = near ? Math.max(d.capacity, fullest) : fullest;
  const rows = d.bars.map(b => {
    const place = element("div");
    bar(place, d.parts.map((name, i) => ({name, value: b.parts[i], text: bytes(b.parts[i])})), most, d.capacity);
    return element("tr", {}, element("td", {class: "name"}, rowName(b), element("small", {}, b.place)),
      element("td", {class: "bar"}, place), numberCell(bytes(b.planned), ...(d.capacity ? [`${percent(b.planned / d.capacity)} of it`] : [])),
      numberCell(b.observed === null ? "-" : bytes(b.observed)));
  });
  const top = d.bars.reduce((a, b) => b.planned > a.planned ? b : a);
  section.append(element("p", {}, d.capacity === null ? "How much a rank may use is not known." :
    `A rank may use ${bytes(d.capacity)}; the fullest is planned to need ${bytes(fullest)}, ${percent(fullest / d.capacity)} of it` +
    (near ? ", up to the dashed line." : ".")),
  table([["rank"], ["at its fullest moment"], ["planned", true], ["observed", true]], rows), key(d.parts),
  table([["of the fullest rank"], ["then", true], ["share", true], ["most at any moment", true]], d.parts.map((name, i) => element("tr", {},
    element("td", {}, name), numberCell(bytes(top.parts[i])), numberCell(percent(top.parts[i] / top.planned)), numberCell(bytes(top.peaks[i])))), "narrow"));
  section.append(element("p", {class: "note"}, "Weights include running statistics; activations what layers keep for the backward pass; " +
    "halos what a rank holds of others' parts, and what is on its way; workspace packed weights, scratch and sums over ranks." + (d.eager ? " The parts are hplan's plan, not the eager framework's." : "") +
    (d.left_out ? ` ${d.left_out} more kinds of ranks have no row.` : "")), command(d.command));
}

// --- charts ---

function showScaling(section, d, rate) {
  if (d.absent) return absent(section, d.absent, d.command);
  const series = [], xs = new Set(), ys = [];
  d.curves.forEach((c, i) => {
    const colour = COLOURS[i % COLOURS.length], first = c.points[0];
    const at = (p, y) => ({x: p.devices, y, low: p.low, high: p.high, title: `${p.strategy} on ${p.devices}: ${digits(y)} ${rate}`});
    series.push({name: `${c.name}, predicted with its interval`, mark: MARK_NAMES[i % 4], colour, line: true, points: c.points.map(p => at(p, p.images_per_s))});
    series.push({name: `${c.name}, ideal from its first point`, colour, line: true, dash: "3 4",
      points: c.points.map(p => ({x: p.devices, y: first.images_per_s * p.devices / first.devices}))});
    const measured = c.points.filter(p => p.measured !== null);
    if (measured.length) series.push({name: `${c.name}, measured`, mark: "cross", colour: "#000000", size: 6, points: measured.map(p => ({x: p.devices, y: p.measured, title: `measured: ${digits(p.measured)} ${rate}`}))});
    c.points.forEach(p => xs.add(p.devices));
  });
  for (const s of series) for (const p of s.points) ys.push(p.y, ...(p.low ? [p.low, p.high] : []));
  const ticks = [...xs].sort((a, b) => a - b);
  const place = beside(section);
  chart(place, {label: "devices", log: true, values: ticks, ticks, format: String}, {label: rate, log: true, values: ys, format: digits}, series);
  place.append(...d.curves.map(c => table([[c.name], ["devices", true], [rate, true], ["efficiency", true]], c.points.map(p =>
    element("tr", {}, strategyCell(p.strategy), numberCell(String(p.devices)), numberCell(digits(p.images_per_s)),
      numberCell(percent(p.images_per_s / p.devices / (c.points[0].images_per_s / c.points[0].devices))))), "narrow")));
  section.append(command(d.command));
  return undefined;
}

function showPareto(section, d, rate) {
  if (d.absent) return absent(section, d.absent, d.command);
  const at = p => ({x: p.memory_bytes, y: p.images_per_s, title: `${p.strategy} on ${p.devices}: ${digits(p.images_per_s)} ${rate}, ${bytes(p.memory_bytes)}`});
  const best = [...d.front].sort((a, b) => a.memory_bytes - b.memory_bytes);
  const place = beside(section);
  chart(place, {label: "memory of the fullest rank", log: true, values: d.points.map(p => p.memory_bytes), format: bytes},
    {label: rate, values: d.points.map(p => p.images_per_s), format: digits},
    [{name: `a strategy on ${d.devices} device${d.devices === 1 ? "" : "s"}`, mark: "square", colour: "#999999", points: d.points.map(at)},
      {name: "none is better in speed, memory and device hours together", mark: "diamond", colour: COLOURS[0], size: 5, points: best.map(at)}]);
  place.append(table([["what nothing beats"], ["devices", true], ["memory", true], [rate, true]], best.map(p => element("tr", {},
    strategyCell(p.strategy), numberCell(String(p.devices)), numberCell(bytes(p.memory_bytes)), numberCell(digits(p.images_per_s)))), "narrow"));
  section.append(command(d.command));
  return undefined;
}

function errorChart(place, d, phases) {
  const tasks = d.tasks.filter(t => t.predicted_s > 0 && t.measured_s > 0);
  if (!tasks.length) return;
  const all = tasks.flatMap(t => [t.predicted_s, t.measured_s]), low = Math.min(...all), high = Math.max(...all);
  const line = (name, factor, dash) => ({name, line: true, dash, colour: "#555555", points: [{x: low, y: low * factor}, {x: high, y: high * factor}]});
  const series = [line("exact", 1), line("10% too long", 1.1, "4 3"), line("10% too short", 1 / 1.1, "1 3")];
  phases.forEach((name, i) => {
    const points = tasks.filter(t => t.phase === i).map(t => ({x: t.measured_s, y: t.predicted_s, title: `${t.name}: predicted ${seconds(t.predicted_s)}, measured ${seconds(t.measured_s)}`}));
    if (points.length) series.push({name, mark: MARK_NAMES[i % MARK_NAMES.length], colour: COLOURS[i % COLOURS.length], size: 3, points});
  });
  chart(place, {label: "measured time of a task (median over steps)", log: true, values: all, format: seconds},
    {label: "predicted", log: true, values: all, format: seconds}, series, 460);
}

function showErrors(section, d, phases) {
  if (d.absent) return absent(section, d.absent, d.command);
  const rows = [...d.rows, {...d.step, name: "the step"}], place = beside(section);
  place.append(table([["phase (seconds per rank and step)"], ["predicted", true], ["measured", true], ["error", true]], rows.map(r =>
    element("tr", {}, element("td", {}, r.name), numberCell(r.predicted_s === null ? "-" : seconds(r.predicted_s)),
      numberCell(r.measured_s === null ? "-" : seconds(r.measured_s)),
      numberCell(r.error === null ? "-" : `${r.error > 0 ? "+" : ""}${(100 * r.error).toFixed(1)}%`))), "narrow"));
  errorChart(place, d, phases);
  if (d.all_tasks > d.tasks.length) section.append(element("p", {class: "note"}, `${d.tasks.length} of ${d.all_tasks} tasks, evenly chosen.`));
  section.append(command(d.command));
  return undefined;
}

// --- basis ---

function showBasis(section, d) {
  const names = {measured: "measured on this kind of machine", paper: "published figures", datasheet: "data sheets", guess: "guesses"};
  const place = element("div");
  const share = d.shares.map(s => ({name: s.source, value: s.share, text: percent(s.share)}));
  const measured = d.shares.find(s => s.source === "measured").share, guess = d.shares.find(s => s.source === "guess").share;
  section.append(element("p", {}, `${percent(measured)} of the tasks' predicted time rests on measurements, ${percent(guess)} on guesses. Costs: ${d.costs}.`), place,
    table([["its source"], [""], ["share", true]], d.shares.map(s => element("tr", {}, element("td", {}, shapeOf(s.source)), element("td", {}, names[s.source]), numberCell(percent(s.share)))), "narrow"));
  bar(place, share, 1);
  if (d.unmeasured.length) {
    section.append(element("p", {}, "Kinds of tasks without measured or published costs, as shares of the step:"),
      table([["task"], ["guessed", true], ["data sheet", true]], d.unmeasured.map(u => element("tr", {}, element("td", {}, u.task), numberCell(percent(u.guess)), numberCell(percent(u.datasheet)))), "narrow"));
  }
  section.append(command(d.command));
  if (measured < 0.999) section.append(command(d.to_measure, "To measure more, on that machine:"));
}

const shapeOf = name => shape("svg", {viewBox: "0 0 22 14", width: 22, height: 14}, inked(name, 1, 1, 20, 12));

(function fill() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = id => document.getElementById(id), rate = `${data.samples}/s`;
  at("sources").append(`From ${data.files.join(", ")}.`);
  showAnswer(at("answer"), data.answer);
  showCandidates(at("candidates"), data.candidates, rate);
  showTimeline(at("timeline"), data.timeline);
  showMemory(at("memory"), data.memory);
  showScaling(at("scaling"), data.scaling, rate);
  showPareto(at("pareto"), data.pareto, rate);
  showErrors(at("error"), data.error, data.timeline.phases || []);
  showBasis(at("basis"), data.basis);
  document.documentElement.dataset.ready = "yes";
})();
