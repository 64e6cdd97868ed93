// The graph: groups that unfold, edges as thick as what moves; only what is in sight is drawn.

const MOST_DRAWN = 420;

class Graph extends HTMLElement {
  start(state, run) {
    this.state = state;
    this.model = state.model;
    this.run = run;
    this.edges = state.edges ||= new Edges(this.model);
    this.view = state.view ||= { x: 0, y: 0, scale: 1 };
    this.svg = draw("svg", { tabindex: 0, role: "application", "aria-roledescription": "graph",
      "aria-label": "Graph of the program. Arrow keys go along edges and to neighbours, Enter unfolds or folds, plus and minus zoom, 0 shows all." });
    this.layer = draw("g");
    this.svg.append(state.tints.defs(), this.layer);
    this.replaceChildren(this.bar(), this.svg);
    this.listen();
    this.lay();
    new ResizeObserver(() => this.later()).observe(this.svg);
    this.stop = new AbortController();
    state.addEventListener("change", ({ detail }) => this.changed(detail), { signal: this.stop.signal });
  }

  disconnectedCallback() { this.stop?.abort(); }

  bar() {
    const button = (text, name, action) => make("button", { type: "button", "aria-label": name, title: name, onclick: action }, text);
    this.caption = make("span", { class: "faint" });
    const all = make("button", { type: "button", "aria-pressed": String(Boolean(this.state.allEdges)), title: "Draw each edge between ops, those from the forward to the backward pass among them" , onclick: () => {
      this.state.set({ allEdges: !this.state.allEdges });
      all.setAttribute("aria-pressed", String(this.state.allEdges));
    } }, "All edges");
    return make("div", { class: "bar" }, button("+", "Zoom in", () => this.zoom(1.3)), button("−", "Zoom out", () => this.zoom(1 / 1.3)),
      button("Fit", "Show all", () => this.fit()), button("Fold", "Fold all groups", () => this.foldAll()), all, this.caption);
  }

  foldAll() {
    this.state.set({ expanded: new Set(this.model.roots.slice(0, 1)) });
    this.fit();
  }

  changed(names) {
    if (names.includes("expanded") || names.includes("run")) this.lay();
    if (this.state.reveal && names.includes("chosen")) this.reveal(this.state.chosen);
    if (names.includes("view") || names.some((name) => name !== "measure")) this.later();
  }

  get shownRun() { return this.run ?? this.state.run; }

  lay() {
    const { state } = this;
    if (state.laid !== state.expanded) {
      const before = state.layout && state.chosen >= 0 && state.layout.places.get(state.chosen);
      state.layout = new Layout(this.model, this.edges, state.expanded);
      state.laid = state.expanded;
      const after = before && state.layout.places.get(state.chosen);
      if (after) {
        // What was clicked on stays under the pointer.
        this.view.x += (after.x - before.x) * -this.view.scale;
        this.view.y += (after.y - before.y) * -this.view.scale;
      }
    }
    this.places = state.layout.places;
    this.visible = new VisibleEdges(this.model, this.edges, this.places, this.model.runs[this.shownRun]);
    this.touching = new Map();
    for (const edge of this.visible.each) {
      push(this.touching, edge.source, edge);
      push(this.touching, edge.target, edge);
    }
    this.later();
  }

  later() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.paint();
    });
  }

  fit() {
    const { width, height } = this.svg.getBoundingClientRect();
    const { layout } = this.state;
    const scale = Math.max(0.0002, Math.min(1, width / (layout.width + 40), height / (layout.height + 40)));
    this.show(scale, (width - layout.width * scale) / 2, 20);
  }

  // Shows the beginning at a size that can be read.
  begin() {
    const { width } = this.svg.getBoundingClientRect();
    const [main] = this.model.roots;
    const place = this.places.get(main);
    const scale = Math.max(0.55, Math.min(1, width / (place.width + 40)));
    this.show(scale, width / 2 - (place.x + place.width / 2) * scale, 12 - place.y * scale);
  }

  show(scale, x, y) {
    Object.assign(this.view, { scale, x, y });
    this.state.set({ view: this.view });
  }

  zoom(factor, at = null) {
    const box = this.svg.getBoundingClientRect();
    const [x, y] = at || [box.width / 2, box.height / 2];
    const scale = Math.max(0.0002, Math.min(3, this.view.scale * factor));
    const by = scale / this.view.scale;
    this.show(scale, x - (x - this.view.x) * by, y - (y - this.view.y) * by);
  }

  reveal(node) {
    const place = node >= 0 ? this.places.get(this.visible.rep(node)) : null;
    if (!place) return;
    const box = this.svg.getBoundingClientRect();
    const scale = Math.max(this.view.scale, 0.6);
    this.show(scale, box.width / 2 - (place.x + place.width / 2) * scale, box.height / 2 - (place.y + Math.min(place.height, 200) / 2) * scale);
  }

  paint() {
    const box = this.svg.getBoundingClientRect();
    if (!box.width) return;
    const { scale, x, y } = this.view;
    this.sight = { left: -x / scale, top: -y / scale, right: (box.width - x) / scale, bottom: (box.height - y) / scale };
    const run = this.model.runs[this.shownRun];
    const drawn = this.choose();
    const changed = new Set([...run.replay.changedOps(this.state.time)].map((op) => this.visible.rep(this.model.nodeOf(op))));
    const lit = new Set([...this.state.lit].map((node) => this.visible.rep(node)));
    const differs = new Set(this.model.runs.length > 1 ? [...this.model.differing].map((op) => this.visible.rep(this.model.nodeOf(op))) : []);
    const marks = { changed, lit, differs };
    const frames = [];
    const nodes = [];
    for (const [node, how] of drawn) (how === "frame" ? frames : nodes).push(this.node(node, how, marks));
    this.layer.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
    this.layer.replaceChildren(...frames, ...this.lines(drawn, lit), ...nodes);
    this.caption.textContent = `${this.run !== undefined ? `${run.name}: ` : ""}${drawn.size} of ${this.places.size} boxes in sight`;
    this.svg.dataset.drawn = drawn.size;
  }

  // Returns the nodes to draw, groups that would be too small to read as one box, until there are few enough.
  choose() {
    for (let smallest = 9; ; smallest *= 1.6) {
      const drawn = new Map();
      const visit = (node) => {
        const place = this.places.get(node);
        if (!this.inSight(place)) return;
        if (!this.state.expanded.has(node)) drawn.set(node, "node");
        else if (Math.min(place.height, place.width) * this.view.scale < smallest * 2) drawn.set(node, "coarse");
        else {
          drawn.set(node, "frame");
          this.model.childrenOf(node).forEach(visit);
        }
      };
      this.model.roots.forEach(visit);
      if (drawn.size <= MOST_DRAWN || smallest > 4000) return drawn;
    }
  }

  inSight({ x, y, width, height }) {
    const { left, top, right, bottom } = this.sight;
    return x < right && x + width > left && y < bottom && y + height > top;
  }

  node(node, how, marks) {
    const { model, state } = this;
    const { x, y, width, height } = this.places.get(node);
    const classes = ["node", how, ...Object.keys(marks).filter((name) => marks[name].has(node))];
    if (state.chosen === node) classes.push("chosen");
    const op = model.opOf(node);
    if (op >= 0 && !model.isGroup(node)) classes.push(["op", "argument", "result"][model.data.ops.kind[op]]);
    const element = draw("g", { class: classes.join(" "), "data-node": node, transform: `translate(${x} ${y})`, role: "img", "aria-label": state.describe(node) });
    const sharding = this.sharding(node);
    if (how === "node" && model.isGroup(node) && model.groupKind(node) === "repeats") {
      for (const by of [8, 4]) element.append(draw("rect", { class: "sheet", x: by, y: by, width, height, rx: 6, "aria-hidden": "true" }));
    }
    element.append(draw("rect", { class: "body", width, height, rx: 6, style: how === "frame" ? null : `fill: ${state.tints.fill(sharding)}` }));
    const readable = this.view.scale > 0.3;
    const size = how === "coarse" ? Math.min(60, 13 / this.view.scale) : 12;
    if (readable || how === "coarse" || how === "frame") element.append(...this.words(node, how, width, size));
    if (readable && how !== "frame") element.append(...this.signs(node, sharding, width, height));
    return element;
  }

  sharding(node) {
    const op = this.model.opOf(node);
    const value = op < 0 ? undefined : this.model.data.ops.outputs[op][0];
    return value === undefined ? null : this.model.runs[this.shownRun].replay.sharding(value, this.state.time);
  }

  words(node, how, width, size) {
    const { model, state } = this;
    const isGroup = model.isGroup(node);
    const sign = isGroup ? (how === "frame" ? "▾ " : "▸ ") : "";
    const most = Math.floor((width - 16 - (isGroup ? 0 : 34)) / (size * 0.55));
    if (most < 3) return [];
    const lines = [draw("text", { x: 8, y: how === "coarse" ? Math.min(size + 6, 70) : 17, style: `font-size: ${size}px` }, shorten(sign + model.label(node, state.words), most))];
    if (how === "node") lines.push(draw("text", { class: "small", x: 8, y: 30 }, shorten(this.note(node), most)));
    return lines;
  }

  note(node) {
    const { model } = this;
    if (model.isGroup(node)) return plural(model.opsIn(node).length, "op", model.opsIn(node).length);
    const [value] = model.data.ops.outputs[node];
    const type = value === undefined ? "" : model.typeOf(value).text.replace(/^tensor<(.*)>$/, "$1");
    const where = model.whereOf(node).split("/").pop();
    const around = model.parent[node] >= 0 ? model.groupName(model.parent[node]).split("/").pop() : "";
    return [where !== around && where, type].filter(Boolean).join(" · ");
  }

  signs(node, sharding, width, height) {
    const { model } = this;
    const found = [];
    if (sharding !== null && sharding >= 0 && model.data.shardings[sharding].dims.length && !model.isGroup(node)) {
      found.push(draw("g", { transform: `translate(${width - 34} ${(height - 24) / 2})` }, smallBox(model, model.data.shardings[sharding], 26, 24)));
    }
    const run = model.runs[this.shownRun];
    const text = this.badge(node, run);
    if (text) {
      const wide = text.length * 6 + 8;
      found.push(draw("g", { class: "badge", transform: `translate(${width - wide + 6} -11)` }, draw("rect", { width: wide, height: 15, rx: 7 }), draw("text", { x: 4, y: 11 }, text)));
    }
    return found;
  }

  // The transfers at an op, or how many there are in a group, with the number of runs.
  badge(node, run) {
    if (this.model.isGroup(node)) {
      const count = this.transferCounts(run)[node];
      return count ? plural(count, "transfer") : "";
    }
    const kinds = new Map();
    for (const number of run.transfersAt.get(node) || []) {
      const kind = run.kindName(number);
      kinds.set(kind, (kinds.get(kind) || 0) + run.transfers.runs[number]);
    }
    return [...kinds].map(([kind, runs]) => (runs === 1 ? kind : `${kind} ×${formatCount(runs)}`)).join(", ");
  }

  transferCounts(run) {
    if (run.counts) return run.counts;
    const counts = run.counts = new Int32Array(this.model.parent.length);
    run.transfersAt.forEach((numbers, op) => {
      const node = this.model.nodeOf(op);
      for (const one of [node, ...this.model.ancestors(node)]) counts[one] += numbers.length;
    });
    return counts;
  }

  // Bundles, the edges at what is chosen, and those of a highlighted chain; all edges on request.
  lines(drawn, lit) {
    const { state } = this;
    this.drawnReps = new Map();
    const { chosen } = state;
    const isHere = (edge) => edge.source === chosen || edge.target === chosen;
    const isLit = (edge) => lit.has(edge.source) && lit.has(edge.target);
    const asked = state.allEdges ? this.visible.each : lit.size ? this.visible.each.filter(isLit) : this.touching.get(chosen) || [];
    const known = new Set(asked.map((edge) => `${edge.source} ${edge.target}`));
    const plain = this.visible.bundled.filter((edge) => !known.has(`${edge.source} ${edge.target}`));
    const paths = (edges, isAsked) => this.merged(edges, drawn).slice(0, MOST_DRAWN).map((edge) => this.line(edge, isAsked && (isHere(edge) || isLit(edge)), isAsked));
    return [...(state.allEdges ? [] : paths(plain, false)), ...paths(asked, true)].filter(Boolean);
  }

  // The edges of what is drawn, those between the same two boxes as one, with most bytes first.
  merged(list, drawn) {
    const size = this.model.parent.length;
    const edges = new Map();
    for (const edge of list) {
      const source = this.drawnAs(edge.source, drawn);
      const target = this.drawnAs(edge.target, drawn);
      if (source === target || !(drawn.has(source) || drawn.has(target))) continue;
      const known = edges.get(source * size + target);
      if (!known) edges.set(source * size + target, { ...edge, source, target, numbers: new Set(edge.numbers) });
      else this.visible.addTransfers(known, edge.numbers);
    }
    return [...edges.values()].sort((a, b) => b.moved - a.moved);
  }

  // The box that stands for a visible node: itself, or the group around it that is drawn as one box.
  drawnAs(node, drawn) {
    if (drawn.has(node)) return node;
    if (!this.drawnReps.has(node)) {
      const around = this.model.parent[node];
      const above = around < 0 || drawn.get(around) === "frame" ? node : this.drawnAs(around, drawn);
      // Outside of what is in sight a node stands for itself.
      this.drawnReps.set(node, drawn.has(above) ? above : node);
    }
    return this.drawnReps.get(node);
  }

  line(edge, isLit, isAsked) {
    const from = this.places.get(edge.source);
    const to = this.places.get(edge.target);
    if (!from || !to) return null;
    const width = edge.moved ? 1.5 + 5 * Math.log1p(edge.moved) / Math.log1p(this.visible.largest) : 1;
    const classes = ["edge", edge.moved && "moves", isLit && "lit", isAsked && "asked", this.model.first[edge.source] > this.model.first[edge.target] && "back"].filter(Boolean);
    const isBeside = this.model.parent[edge.source] === this.model.parent[edge.target];
    const around = this.places.get(this.model.parent[to.y > from.y ? edge.source : edge.target]);
    const lane = isBeside ? this.laneOf(edge, from, to) : around ? around.x + around.width + 6 : null;
    return draw("path", { class: classes.join(" "), "stroke-width": width / Math.max(this.view.scale, 0.5), "data-edge": `${edge.source} ${edge.target}`, d: edgePath(from, to, lane) }, draw("title", {}, this.edgeText(edge)));
  }

  // The lane beside what stands between the ends of an edge; the edges of a node share one.
  laneOf(edge, from, to) {
    const [top, bottom] = [Math.min(from.y, to.y), Math.max(from.y + from.height, to.y + to.height)];
    const around = this.model.parent[edge.source];
    const siblings = around < 0 ? this.model.roots : this.model.childrenOf(around);
    let right = Math.max(from.x + from.width, to.x + to.width);
    let between = 0;
    const middles = [from.x + from.width / 2, to.x + to.width / 2];
    for (const node of siblings) {
      const place = this.places.get(node);
      if (node === edge.source || node === edge.target || place.y + place.height < top || place.y > bottom) continue;
      if (place.x > Math.max(...middles) + 20 || place.x + place.width < Math.min(...middles) - 20) continue;
      between += 1;
      right = Math.max(right, place.x + place.width);
    }
    return between || to.y < from.y ? right + LANE.first + LANE.step * (siblings.indexOf(edge.source) % LANE.count) : null;
  }

  edgeText(edge) {
    const names = `${this.model.label(edge.source, this.state.words)} → ${this.model.label(edge.target, this.state.words)}`;
    return edge.moved ? `${names}: ${formatBytes(edge.moved)} sent by a device, ${plural(edge.numbers.size, "transfer", edge.numbers.size)}` : `${names}: nothing moves`;
  }
}
