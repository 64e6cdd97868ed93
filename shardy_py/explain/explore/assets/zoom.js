// Charts along the program that zoom: by wheel, by buttons and by keys; dragging moves them.

class ZoomChart extends HTMLElement {
  get left() { return 58; }
  get height() { return 132; }

  start(state) {
    this.state = state;
    this.model = state.model;
    state.addEventListener("change", ({ detail }) => { if (detail.includes("run")) this.load(); });
    new ResizeObserver(() => this.later()).observe(this);
    this.load();
  }

  // Reads the run; a chart of nothing is hidden.
  load() {
    this.hidden = !this.read(this.model.runs[this.state.run]);
    if (this.hidden) return;
    this.view = [0, this.extent];
    this.svg = draw("svg", { class: "chart", role: "img", tabindex: 0, "aria-label": this.describe() });
    this.listen();
    this.replaceChildren(make("div", { class: "head" }, this.head(), this.buttons()), this.svg, ...this.foot());
    this.paint();
  }

  buttons() {
    const button = (text, name, action) => make("button", { type: "button", "aria-label": `${name}: ${this.name}`, title: name, onclick: action }, text);
    return make("span", { class: "tools" }, button("+", "Zoom in", () => this.zoom(2)), button("−", "Zoom out", () => this.zoom(1 / 2)), button("All", "Show all", () => this.look(0, this.extent)));
  }

  listen() {
    const { svg } = this;
    svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.shiftKey) this.move(event.deltaY / 400);
      else this.zoom(Math.exp(-event.deltaY / 400), this.at(event));
    }, { passive: false });
    svg.addEventListener("pointerdown", (event) => this.press(event));
    svg.addEventListener("keydown", (event) => {
      const actions = { "+": () => this.zoom(2), "=": () => this.zoom(2), "-": () => this.zoom(1 / 2), 0: () => this.look(0, this.extent), ...this.keys() };
      if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      actions[event.key]();
    });
  }

  press(event) {
    const [start, [low, high]] = [event.clientX, this.view];
    let moved = false;
    const move = (next) => {
      const dx = next.clientX - start;
      if (!moved && Math.abs(dx) < 4) return;
      moved = true;
      const by = (-dx / this.inner) * (high - low);
      this.look(low + by, high + by);
    };
    this.svg.addEventListener("pointermove", move);
    window.addEventListener("pointerup", () => {
      this.svg.removeEventListener("pointermove", move);
      if (!moved) this.pick(this.at(event));
    }, { once: true });
  }

  // The place along the program that is under the pointer.
  at(event) {
    const [low, high] = this.view;
    return low + ((event.clientX - this.svg.getBoundingClientRect().left - this.left) / this.inner) * (high - low);
  }

  zoom(factor, at = (this.view[0] + this.view[1]) / 2) {
    const [low, high] = this.view;
    this.look(at - (at - low) / factor, at + (high - at) / factor);
  }

  move(share) {
    const [low, high] = this.view;
    this.look(low + share * (high - low), high + share * (high - low));
  }

  look(low, high) {
    const span = Math.min(this.extent, Math.max(this.least, high - low));
    const start = Math.max(0, Math.min(this.extent - span, low));
    this.view = [start, start + span];
    this.later();
  }

  later() {
    if (this.hidden || this.pending) return;
    this.pending = requestAnimationFrame(() => { this.pending = 0; this.paint(); });
  }

  paint() {
    const width = Math.max(200, this.svg.clientWidth || this.clientWidth);
    this.inner = width - this.left - 12;
    const [low, high] = this.view;
    const x = (value) => this.left + ((value - low) / (high - low || 1)) * this.inner;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${this.height}`);
    this.svg.style.height = `${this.height}px`;
    this.svg.dataset.view = this.view.join(" ");
    this.svg.replaceChildren(...this.shapes(x, low, high).filter(Boolean));
  }

  // Bands with the names of the groups that ops stand in, the outermost on top.
  bands(x, low, high) { return this.spans.flatMap((spans, depth) => this.band(spans, 16 * depth, x, low, high)); }

  // The spans of one depth, with names as far as there is room for them.
  band(spans, y, x, low, high) {
    return spans.filter(({ start, end }) => end > low && start < high).flatMap(({ node, start, end }, at) => {
      const [left, right] = [Math.max(this.left, x(start)), Math.min(this.left + this.inner, x(end))];
      if (right - left < 1) return [];
      const name = node < 0 ? "" : this.model.groupName(node);
      const room = Math.floor((right - left - 6) / 5.6);
      return [draw("rect", { class: `band ${at % 2 ? "odd" : ""}`, x: left, y, width: right - left, height: 14 }, draw("title", {}, name)),
        room > 2 ? draw("text", { class: "small", x: left + 3, y: y + 10.5 }, shorten(name, room)) : null];
    });
  }

  // The spans of the outermost groups, and of those directly in them.
  layerSpans(pieces) { return [0, 1].map((depth) => this.spansOf(pieces, depth)); }

  // Spans of pieces behind each other that stand in one group of a depth.
  spansOf(pieces, depth) {
    const spans = [];
    for (const { op, start, end } of pieces) {
      const node = this.groupOf(op, depth);
      const last = spans[spans.length - 1];
      // Constants, and functions that layers share, belong to what they are called from.
      const isShared = node < 0 || !this.model.data.ops.inputs[op].length;
      if (last && (last.node === node || isShared)) last.end = end;
      else spans.push({ node, start, end });
    }
    return spans.filter(({ node }) => node >= 0);
  }

  // The group of layers at a depth around an op; those of repeats say nothing on their own.
  groupOf(op, depth) {
    this.groups ||= new Map();
    if (op < 0) return -1;
    const node = this.model.parent[this.model.nodeOf(op)];
    const key = node * 4 + depth;
    if (!this.groups.has(key)) {
      const around = [node, ...this.model.ancestors(node)].filter((one) => one >= 0 && /^(layer|repeat|optimizer|part|line|arguments|results)$/.test(this.model.groupKind(one)));
      this.groups.set(key, around.reverse()[depth] ?? -1);
    }
    return this.groups.get(key);
  }
}
