// Memory over the program, time on a machine, and the orders of a sweep.

const CHART = { width: 400, height: 96, left: 4, top: 14, bottom: 12 };

function chart(label, ...children) {
  return draw("svg", { class: "chart", viewBox: `0 0 ${CHART.width} ${CHART.height}`, preserveAspectRatio: "none", role: "img", tabindex: 0, "aria-label": label }, ...children);
}

function swatch(color) {
  return make("span", { "aria-hidden": "true", style: `display: inline-block; width: 9px; height: 9px; margin-right: 3px; background: var(${color})` });
}

class MemoryChart extends HTMLElement {
  start(state) {
    this.state = state;
    state.addEventListener("change", ({ detail }) => { if (detail.includes("run")) this.paint(); });
    this.paint();
  }

  paint() {
    const { memory } = this.state.model.runs[this.state.run].data;
    this.hidden = !memory || !memory.bytes.length;
    if (this.hidden) return;
    this.memory = memory;
    this.local = this.state.model.runs[this.state.run].local;
    const most = Math.max(...memory.bytes, 1);
    const peak = memory.bytes.indexOf(most);
    const x = (at) => (CHART.width * at) / Math.max(1, memory.bytes.length - 1);
    const y = (bytes) => CHART.height - CHART.bottom - ((CHART.height - CHART.bottom - CHART.top) * bytes) / most;
    const line = memory.bytes.map((bytes, at) => `${at ? "L" : "M"}${x(at).toFixed(1)} ${y(bytes).toFixed(1)}`).join("");
    this.mark = draw("line", { class: "mark", y1: CHART.top, y2: CHART.height - CHART.bottom });
    const svg = chart(`Memory of a device over the main function: at most ${formatBytes(most)} at ${this.opName(peak)}. Arrow keys move along it.`,
      draw("path", { class: "area", d: `${line}V${y(0)}H0Z`, "vector-effect": "non-scaling-stroke" }), this.mark);
    svg.addEventListener("pointerdown", (event) => {
      const box = svg.getBoundingClientRect();
      this.show(Math.round(((event.clientX - box.left) / box.width) * (memory.bytes.length - 1)));
    });
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -50, PageDown: 50 }[event.key];
      if (step) { event.preventDefault(); this.show(this.at + step); }
      if (event.key === "Home") this.show(peak);
    });
    this.text = make("div", { class: "line" });
    const title = make("button", { class: "link", type: "button", onclick: () => this.show(peak) }, `peak ${formatBytes(most)}`);
    const fused = formatQuantity(this.state.model.runs[this.state.run].quantities.peak_bytes);
    this.replaceChildren(make("div", {}, make("b", {}, "Memory "), title, ` if every tensor is stored; estimated with fusion: ${fused}`), svg, this.text);
    this.x = x;
    this.show(peak);
  }

  opName(at) { return this.state.model.label(this.memory.op[at], this.state.words); }

  show(at) {
    const { memory, state } = this;
    this.at = Math.max(0, Math.min(memory.bytes.length - 1, at));
    this.mark.setAttribute("x1", this.x(this.at));
    this.mark.setAttribute("x2", this.x(this.at));
    const { model } = state;
    const live = this.live(this.at);
    const link = (value) => make("button", { class: "link", type: "button", onclick: () => state.choose(model.nodeOf(model.data.values.op[value]), { reveal: true }) }, `${model.valueName(value)} ${formatBytes(this.local[value])}`);
    const op = make("button", { class: "link", type: "button", onclick: () => state.choose(model.nodeOf(memory.op[this.at]), { reveal: true }) }, this.opName(this.at));
    this.text.replaceChildren(`${formatBytes(memory.bytes[this.at])} at `, op, `; ${plural(live.length, "tensor", live.length)} live, the largest: `, ...live.slice(0, 5).flatMap((value, at) => [at ? ", " : "", link(value)]));
  }

  live(at) {
    const { memory } = this;
    const found = [];
    memory.value.forEach((value, number) => { if (memory.from[number] <= at && at <= memory.to[number]) found.push(value); });
    return found.sort((a, b) => this.local[b] - this.local[a] || a - b);
  }
}

class TimeChart extends HTMLElement {
  start(state) {
    this.state = state;
    state.addEventListener("change", ({ detail }) => { if (detail.includes("run")) this.paint(); });
    this.paint();
  }

  paint() {
    const { model } = this.state;
    const run = model.runs[this.state.run];
    this.hidden = run.quantities.seconds.value === null;
    if (this.hidden) return;
    const pieces = this.pieces(run);
    const whole = pieces.length ? pieces[pieces.length - 1].end : 0;
    const lane = (name, y) => this.lane(pieces.filter((piece) => piece.kind === name), name, y, whole);
    const [compute, moved] = [run.quantities.compute_seconds, run.quantities.communication_seconds].map(formatQuantity);
    const svg = chart(`Time on ${model.data.machine}: ${formatQuantity(run.quantities.seconds)}, computing ${compute}, communicating ${moved}`,
      lane("compute", 22), lane("transfer", 56));
    svg.addEventListener("click", (event) => {
      const box = svg.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * whole;
      const piece = pieces.find((one) => one.end >= at);
      if (piece) this.state.choose(model.nodeOf(piece.op), { reveal: true });
    });
    this.replaceChildren(make("div", {}, make("b", {}, `${model.data.machine} `), `${formatQuantity(run.quantities.seconds)}: `, swatch("--accent"), `computing ${compute}, `, swatch("--moved"), `communicating ${moved}, one after the other`), svg);
  }

  // What happens one after the other: computing at an op, then the transfers there.
  pieces(run) {
    const found = [];
    let now = 0;
    const add = (kind, op, seconds) => {
      if (!seconds) return;
      found.push({ kind, op, start: now, end: now + seconds });
      now += seconds;
    };
    for (let op = 0; op < this.state.model.count; op += 1) {
      add("compute", op, run.data.seconds[op]);
      for (const number of run.transfersAt.get(op) || []) add("transfer", op, run.seconds(number));
    }
    return found;
  }

  lane(pieces, name, y, whole) {
    let path = "";
    let open = null;
    const flush = () => { if (open) path += `M${open[0].toFixed(2)} ${y}H${Math.max(open[1], open[0] + 0.4).toFixed(2)}v20H${open[0].toFixed(2)}Z`; };
    for (const { start, end } of pieces) {
      const [left, right] = [start, end].map((seconds) => (CHART.width * seconds) / whole);
      if (open && left - open[1] < 0.3) open[1] = right;
      else { flush(); open = [left, right]; }
    }
    flush();
    return draw("path", { class: name, d: path });
  }
}

class ParetoChart extends HTMLElement {
  start(state) {
    const { sweep } = state.model.data;
    this.hidden = !sweep || !sweep.rows.length;
    if (this.hidden) return;
    this.rows = sweep.rows;
    const most = (key) => Math.max(...this.rows.map((row) => row[key]), 1);
    const [mostX, mostY] = [most("bytes"), most("memory")];
    const front = this.front();
    this.text = make("div", { "aria-live": "polite" }, "choose a point");
    const points = this.rows.map((row, at) => draw("circle", { cx: 10 + (380 * row.bytes) / mostX, cy: 84 - (66 * row.memory) / mostY, r: 4, tabindex: 0, role: "button",
      class: front.has(at) ? "front" : "", "aria-label": this.describe(row), "data-order": row.name, onclick: () => this.show(row), onfocus: () => this.show(row) }, draw("title", {}, this.describe(row))));
    const svg = draw("svg", { class: "chart", viewBox: `0 0 ${CHART.width} ${CHART.height}`, role: "group", "aria-label": `${this.rows.length} orders by bytes sent and peak memory; ${front.size} are best` },
      draw("text", { class: "small", x: 2, y: 10 }, `↑ peak memory, up to ${formatBytes(mostY)}`), draw("text", { class: "small", x: 398, y: 95, "text-anchor": "end" }, `bytes sent, up to ${formatBytes(mostX)} →`), ...points);
    this.replaceChildren(make("div", {}, make("b", {}, `${this.rows.length} orders `), "those that no other one beats are red"), svg, this.text);
  }

  front() {
    const beats = (a, b) => a.bytes <= b.bytes && a.memory <= b.memory && (a.bytes < b.bytes || a.memory < b.memory);
    return new Set(this.rows.map((_, at) => at).filter((at) => !this.rows.some((other) => beats(other, this.rows[at]))));
  }

  describe(row) {
    return `${row.name}: ${formatBytes(row.bytes)} sent, peak ${formatBytes(row.memory)}${row.seconds === null ? "" : `, ${formatSeconds(row.seconds)}`}, ${row.changed} tensors sharded differently`;
  }

  show(row) { this.text.textContent = this.describe(row); }
}

customElements.define("shardy-memory", MemoryChart);
customElements.define("shardy-time", TimeChart);
customElements.define("shardy-pareto", ParetoChart);
