// timeline.js - the step on a canvas: ranks as rows, the prediction above the measurement on one time axis.
// A row has the compute queue above, sends, receives and collectives below; waiting is drawn as waiting.

const LEFT = 118, TOP = 26, TITLE = 24, RIGHT = 12, MOST_ARROWS = 250;
const QUEUES = ["compute", "send", "receive", "collective"];
const TASK = {label: 0, phase: 1, queue: 2, layer: 3, micro: 4, bytes: 5, source: 6, meeting: 7};

// Rows of all sides with their spans in seconds from the start of the step.
function timelineRows(data) {
  const rows = [];
  for (const side of data.sides) {
    for (const r of side.rows) {
      const spans = [];
      let start = 0;
      for (let i = 0; i < r.spans.length; i += 4) {
        start += r.spans[i + 1];
        spans.push({task: side.tasks[r.spans[i]], t0: start * 1e-9, t1: (start + r.spans[i + 2]) * 1e-9, met: (start + r.spans[i + 3]) * 1e-9});
      }
      const row = {side, ...r, spans};
      for (const s of spans) s.row = row;
      row.gaps = [];
      for (let i = 0; i < r.waits.length; i += 2) row.gaps.push({waiting: true, row, t0: r.waits[i] * 1e-9, t1: (r.waits[i] + r.waits[i + 1]) * 1e-9});
      rows.push(row);
    }
  }
  return rows;
}

// Messages: [span of the sender, span of the receiver], of the rows that are shown.
function messagesOf(rows) {
  const ends = new Map(), found = [];
  for (const row of rows) for (const s of row.spans) {
    const queue = s.task[TASK.queue];
    if (queue !== 1 && queue !== 2 || s.task[TASK.meeting] < 0) continue;
    const name = `${row.side.name} ${row.replica} ${s.task[TASK.meeting]}`;
    const pair = ends.get(name) || [];
    pair[queue - 1] = s;
    ends.set(name, pair);
  }
  for (const pair of ends.values()) if (pair[0] && pair[1]) found.push(pair);
  return found;
}

class Timeline {
  constructor(place, data) {
    this.data = data;
    this.rows = timelineRows(data);
    this.messages = messagesOf(this.rows);
    this.end = Math.max(...data.sides.map(s => s.extent_s));
    this.view = {t0: 0, t1: this.end};
    this.found = new Set();
    this.searched = false;
    this.canvas = element("canvas", {tabindex: 0, role: "img", "aria-label": "timeline of one step: + and - zoom, arrows move, 0 shows all"});
    this.tip = element("div", {class: "tip", hidden: ""});
    this.status = element("output");
    this.drawing = element("div", {class: "drawing"}, this.canvas, this.tip);
    place.append(this.controls(), this.drawing);
    this.lay();
    this.listen();
    drawWide(this.drawing, width => { this.width = width; this.resize(); });
  }

  controls() {
    const button = (name, title, act) => {
      const b = element("button", {type: "button", title}, name);
      b.addEventListener("click", act);
      return b;
    };
    this.search = element("input", {type: "search", placeholder: "search: layer, task, m3", "aria-label": "search tasks"});
    this.search.addEventListener("input", () => this.find(this.search.value));
    this.search.addEventListener("keydown", e => { if (e.key === "Enter") this.next(); });
    return element("div", {class: "controls"},
      button("+", "zoom in (+)", () => this.zoom(0.5)), button("\u2212", "zoom out (-)", () => this.zoom(2)),
      button("\u2190", "earlier", () => this.move(-0.25)), button("\u2192", "later", () => this.move(0.25)),
      button("whole step", "show all (0)", () => this.show(0, this.end)), this.search, this.status);
  }

  // --- layout ---

  lay() {
    const height = [[4, 44], [16, 32], [32, 22], [Infinity, 15]].find(([most]) => this.rows.length <= most)[1];
    let y = TOP, side = null;
    this.titles = [];
    for (const row of this.rows) {
      if (row.side !== side) {
        side = row.side;
        this.titles.push({y, text: this.titleOf(side)});
        y += TITLE;
      }
      row.y = y;
      row.height = height - 3;
      y += height;
    }
    this.height = y + 6;
  }

  titleOf(side) {
    const of = side.name === "measured" ? `, step ${side.step} of the run${side.host ? ` on ${side.host}` : ""}, the one of median length` : "";
    return `${side.name}: ${seconds(side.step_s)}${of}`;
  }

  lane(row, queue) {
    const compute = row.height * 0.55, each = (row.height - compute - 1) / 3;
    return queue === 0 ? {y: row.y, h: compute} : {y: row.y + compute + 1 + (queue - 1) * each, h: each};
  }

  resize() {
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * scale);
    this.canvas.height = Math.round(this.height * scale);
    this.canvas.style.height = `${this.height}px`;
    this.context = this.canvas.getContext("2d");
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    this.inks = Object.fromEntries([...this.data.phases, "waiting"].map(p => [p, canvasInk(this.context, p)]));
    this.draw();
  }

  x(t) {
    return LEFT + (t - this.view.t0) / (this.view.t1 - this.view.t0) * (this.width - LEFT - RIGHT);
  }

  time(x) {
    return this.view.t0 + (x - LEFT) / (this.width - LEFT - RIGHT) * (this.view.t1 - this.view.t0);
  }

  // --- drawing ---

  draw() {
    const c = this.context;
    c.clearRect(0, 0, this.width, this.height);
    c.font = '12px system-ui, "Liberation Sans", Arial, sans-serif';
    this.drawAxis(c);
    c.save();
    c.beginPath();
    c.rect(LEFT, TOP, this.width - LEFT - RIGHT, this.height - TOP);
    c.clip();
    for (const row of this.rows) this.drawRow(c, row);
    this.drawArrows(c);
    c.restore();
    this.drawNames(c);
  }

  // Once a frame, however often the pointer moves.
  drawLater() {
    if (this.waits) return;
    this.waits = true;
    requestAnimationFrame(() => {
      this.waits = false;
      this.draw();
    });
  }

  drawAxis(c) {
    const span = this.view.t1 - this.view.t0;
    c.fillStyle = "#1b1b1b";
    c.textAlign = "center";
    const ticks = ticksOf(0, span, Math.max(2, Math.floor((this.width - LEFT) / 110)), false);
    for (const t of ticks) {
      const x = this.x(this.view.t0 + t);
      c.fillStyle = "#e0e0e0";
      c.fillRect(x, TOP - 4, 1, this.height);
      c.fillStyle = "#1b1b1b";
      const text = this.view.t0 > 0 ? `+${seconds(t)}` : seconds(t);
      if (x + c.measureText(text).width / 2 < this.width - 2) c.fillText(text, x, TOP - 10);
    }
    c.textAlign = "left";
    c.fillText(this.view.t0 > 0 ? `${seconds(this.view.t0)} and` : "", 6, TOP - 10);
  }

  drawNames(c) {
    c.textBaseline = "middle";
    for (const t of this.titles) {
      c.fillStyle = "#ffffff";
      c.fillRect(0, t.y, this.width, TITLE - 3);
      c.fillStyle = "#1b1b1b";
      c.font = 'bold 12px system-ui, "Liberation Sans", Arial, sans-serif';
      c.fillText(t.text, 6, t.y + TITLE / 2, this.width - 12);
    }
    c.font = '12px system-ui, "Liberation Sans", Arial, sans-serif';
    for (const row of this.rows) {
      c.fillStyle = "#1b1b1b";
      c.fillText(rowName(row), 6, row.y + row.height / 2, LEFT - 12);
    }
    c.textBaseline = "alphabetic";
  }

  box(c, s, t0, t1, name, lane) {
    const x0 = Math.max(LEFT - 2, this.x(t0)), x1 = Math.min(this.width, this.x(t1));
    if (x1 < LEFT || x0 > this.width - RIGHT || x1 <= x0 && t1 > t0) return;
    c.globalAlpha = this.searched && !this.found.has(s) ? 0.18 : 1;
    c.fillStyle = this.inks[name];
    c.fillRect(x0, lane.y, Math.max(x1 - x0, 0.6), lane.h);
    if (x1 - x0 > 3) {
      c.strokeStyle = s === this.hovered ? "#000000" : name === "waiting" ? "#bbbbbb" : "#55555599";
      c.lineWidth = s === this.hovered ? 2 : 0.6;
      c.strokeRect(x0 + 0.3, lane.y + 0.3, x1 - x0 - 0.6, lane.h - 0.6);
    }
    c.globalAlpha = 1;
  }

  drawRow(c, row) {
    for (const g of row.gaps) this.box(c, g, g.t0, g.t1, "waiting", this.lane(row, 0));
    for (const s of row.spans) {
      if (s.t1 < this.view.t0 || s.t0 > this.view.t1) continue;
      const queue = s.task[TASK.queue], lane = this.lane(row, queue);
      if (s.met > s.t0) this.box(c, s, s.t0, s.met, "waiting", lane);
      this.box(c, s, s.met, s.t1, this.data.phases[s.task[TASK.phase]], lane);
      this.drawLabel(c, s, lane);
    }
  }

  drawLabel(c, s, lane) {
    const x0 = Math.max(this.x(s.met), LEFT), x1 = Math.min(this.x(s.t1), this.width - RIGHT);
    const text = s.task[TASK.label];
    if (lane.h < 12 || x1 - x0 < 40 || c.measureText(text).width > x1 - x0 - 8) return;
    c.globalAlpha = this.searched && !this.found.has(s) ? 0.18 : 1;
    c.fillStyle = "#ffffffcc";
    c.fillRect(x0 + 2, lane.y + 1.5, c.measureText(text).width + 4, lane.h - 3);
    c.fillStyle = "#000000";
    c.textBaseline = "middle";
    c.fillText(text, x0 + 4, lane.y + lane.h / 2 + 0.5);
    c.textBaseline = "alphabetic";
    c.globalAlpha = 1;
  }

  // All messages in view, if they are few; else those of the task under the pointer.
  drawArrows(c) {
    const inView = this.messages.filter(([a, b]) => b.t1 >= this.view.t0 && a.t0 <= this.view.t1);
    const shown = inView.length <= MOST_ARROWS ? inView : inView.filter(pair => pair.includes(this.hovered));
    for (const [from, to] of shown) {
      const a = this.lane(from.row, 1), b = this.lane(to.row, 2);
      const x0 = this.x(Math.max(from.met, from.t0)), x1 = this.x(to.t1), y0 = a.y + a.h / 2, y1 = b.y + b.h / 2;
      const strong = from === this.hovered || to === this.hovered;
      c.strokeStyle = c.fillStyle = strong ? "#000000" : "#00000066";
      c.lineWidth = strong ? 1.8 : 0.9;
      c.beginPath();
      c.moveTo(x0, y0);
      c.lineTo(x1, y1);
      c.stroke();
      const turn = Math.atan2(y1 - y0, x1 - x0);
      c.beginPath();
      c.moveTo(x1, y1);
      c.lineTo(x1 - 6 * Math.cos(turn - 0.4), y1 - 6 * Math.sin(turn - 0.4));
      c.lineTo(x1 - 6 * Math.cos(turn + 0.4), y1 - 6 * Math.sin(turn + 0.4));
      c.fill();
    }
  }

  // --- looking around ---

  show(t0, t1) {
    const span = Math.min(Math.max(t1 - t0, this.end * 1e-5), this.end);
    const start = Math.min(Math.max(t0, 0), this.end - span);
    this.view = {t0: start, t1: start + span};
    this.draw();
  }

  zoom(factor, at = (this.view.t0 + this.view.t1) / 2) {
    this.show(at - (at - this.view.t0) * factor, at + (this.view.t1 - at) * factor);
  }

  move(share) {
    const by = share * (this.view.t1 - this.view.t0);
    this.show(this.view.t0 + by, this.view.t1 + by);
  }

  find(text) {
    const wanted = text.trim().toLowerCase();
    this.found = new Set();
    this.searched = wanted !== "";
    this.at = -1;
    if (this.searched) {
      for (const row of this.rows) for (const s of row.spans) {
        if (s.task[TASK.label].toLowerCase().includes(wanted)) this.found.add(s);
      }
    }
    this.status.textContent = this.searched ? `${this.found.size} found${this.found.size ? "; Enter goes from one to the next" : ""}` : "";
    this.draw();
  }

  next() {
    const all = [...this.found];
    if (!all.length) return;
    this.at = (this.at + 1) % all.length;
    const s = this.hovered = all[this.at], room = Math.max((s.t1 - s.t0) * 4, this.end * 1e-4);
    this.show(s.t0 - room, s.t1 + room);
    this.status.textContent = `${this.at + 1} of ${all.length}: ${s.task[TASK.label]}, ${seconds(s.t1 - s.t0)} on rank ${s.row.rank}, ${s.row.side.name}`;
  }

  listen() {
    const c = this.canvas;
    c.addEventListener("wheel", e => {
      if (document.activeElement !== c && !e.ctrlKey) return; // else the page could not be scrolled past it
      e.preventDefault();
      this.zoom(e.deltaY > 0 ? 1.25 : 0.8, this.time(e.offsetX));
    }, {passive: false});
    c.addEventListener("keydown", e => {
      const act = {"+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), "0": () => this.show(0, this.end),
        ArrowLeft: () => this.move(-0.25), ArrowRight: () => this.move(0.25)}[e.key];
      if (!act || e.ctrlKey || e.metaKey) return;
      e.preventDefault();
      act();
    });
    c.addEventListener("pointerdown", e => { this.dragged = {x: e.offsetX, ...this.view}; c.setPointerCapture(e.pointerId); });
    c.addEventListener("pointerup", () => { this.dragged = null; });
    c.addEventListener("pointermove", e => this.point(e));
    c.addEventListener("pointerleave", () => this.hover(null));
  }

  point(e) {
    if (this.dragged) {
      const by = (this.dragged.x - e.offsetX) / (this.width - LEFT - RIGHT) * (this.view.t1 - this.view.t0);
      return this.show(this.dragged.t0 + by, this.dragged.t1 + by);
    }
    return this.hover(this.spanAt(e.offsetX, e.offsetY), e.offsetX, e.offsetY);
  }

  spanAt(x, y) {
    const row = this.rows.find(r => y >= r.y && y < r.y + r.height + 3);
    if (!row || x < LEFT) return null;
    const queue = [0, 1, 2, 3].find(q => y < this.lane(row, q).y + this.lane(row, q).h) ?? 3;
    const t = this.time(x), slack = Math.abs(this.time(x + 1.5) - t);
    const near = s => s.t0 - slack <= t && t <= s.t1 + slack;
    return row.spans.find(s => s.task[TASK.queue] === queue && near(s)) || (queue === 0 ? row.gaps.find(near) : null) || null;
  }

  hover(s, x = 0, y = 0) {
    const changed = s !== this.hovered;
    this.hovered = s;
    if (changed) this.drawLater();
    this.tip.hidden = !s;
    if (!s) return;
    this.tip.replaceChildren(...this.words(s).map(line => element("div", {}, line)));
    const wide = this.tip.offsetWidth, high = this.tip.offsetHeight;
    this.tip.style.left = `${Math.max(0, Math.min(x + 14, this.width - wide - 4))}px`;
    this.tip.style.top = `${y + 18 + high > this.height && y - high > 0 ? y - high - 8 : y + 18}px`;
  }

  words(s) {
    const where = `${rowName(s.row)}${s.row.place ? `: ${s.row.place}` : ""}, ${s.row.side.name}`;
    if (s.waiting) return [`waits ${seconds(s.t1 - s.t0)}`, "the compute queue has nothing to do", where];
    const t = s.task, layer = this.data.layers[t[TASK.layer]], source = this.data.sources[t[TASK.source]];
    return [t[TASK.label], `${this.data.phases[t[TASK.phase]]}, ${QUEUES[t[TASK.queue]]} queue`,
      `${seconds(s.t1 - s.t0)}, from ${seconds(s.t0)}${s.met > s.t0 ? `; the first ${seconds(s.met - s.t0)} waiting for the others` : ""}`,
      layer ? `layer ${layer}` : "", t[TASK.micro] >= 0 ? `micro-batch ${t[TASK.micro]}` : "",
      t[TASK.bytes] > 0 ? bytes(t[TASK.bytes]) : "", where, source ? `its predicted cost: ${source}` : ""].filter(line => line);
  }
}

const rowName = row => row.ranks > 1 ? `rank ${row.rank} + ${row.ranks - 1} alike` : `rank ${row.rank}`;
