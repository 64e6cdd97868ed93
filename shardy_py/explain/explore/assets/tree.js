// The tree: layers, functions and loops, or lines of the source; rows that are out of sight are not made.

const ROW = 22;
const TWO_LINES = 40;

class Tree extends HTMLElement {
  start(state) {
    this.state = state;
    this.model = state.model;
    this.kind = "layers";
    this.query = "";
    this.open = new Map();
    this.roots = { layers: () => this.layers(), functions: () => this.functions(), source: () => this.sources(), transfers: () => this.transfers(), differences: () => this.differences() };
    this.list = make("div", { class: "rows", role: "tree", tabindex: 0, "aria-label": "Program" });
    this.space = make("div", {});
    this.list.append(this.space);
    this.legend = make("div", { class: "legend", role: "group", "aria-label": "Colours" },
      state.tints.legend().map(([name, color]) => make("span", {}, make("i", { style: `background: ${color}` }), name)));
    this.replaceChildren(this.bar(), this.list, this.legend);
    this.list.addEventListener("scroll", () => this.paint());
    this.list.addEventListener("click", (event) => this.click(event));
    this.list.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.paint()).observe(this.list);
    state.addEventListener("change", ({ detail }) => this.changed(detail));
    this.build();
  }

  get measure() { return this.kind === "transfers" && !this.query ? "sent" : this.state.measure; }

  bar() {
    const kinds = [["layers", "layers"], ["functions", "functions and loops"], ["source", "source lines"], ["transfers", "transfers by bytes"]];
    if (this.model.runs.length > 1) kinds.push(["differences", "differences"]);
    const search = make("input", { type: "search", placeholder: "search: name, layer, line", "aria-label": "Search",
      oninput: () => {
        this.query = search.value.toLowerCase();
        this.build();
        if (!this.query) this.follow();
      } });
    return make("div", { class: "bar" }, search, choice("by", kinds, this.kind, (kind) => { this.kind = kind; this.build(); }));
  }

  changed(names) {
    if (names.includes("words") || names.includes("run")) this.build();
    else if (names.includes("chosen") && this.state.reveal) this.follow();
    else if (names.some((name) => /chosen|time|measure|lit/.test(name))) this.paint();
  }

  // The height of a row: transfers have two lines.
  get high() { return this.kind === "transfers" && !this.query ? TWO_LINES : ROW; }

  // Entries: a node of the graph or -1, a text, the ops of it, and a function that returns the entries inside.
  entry(node, text, inside = null, ops = null) { return { node, text, inside, ops, key: `${node} ${text}` }; }

  nodeEntry(node) {
    const children = this.model.childrenOf(node);
    return this.entry(node, this.model.title(node, this.state.words), children.length ? () => children.map((one) => this.nodeEntry(one)) : null);
  }

  layers() { return this.model.roots.map((node) => this.nodeEntry(node)); }

  functions() {
    const { model } = this;
    const below = (node) => {
      const found = [];
      for (const child of model.childrenOf(node)) {
        if (!model.isGroup(child)) found.push(child);
        else if (/function|loop|region/.test(model.groupKind(child))) found.push(child);
        else found.push(...below(child));
      }
      return found.sort((a, b) => model.first[a] - model.first[b]);
    };
    const of = (node) => this.entry(node, model.title(node, this.state.words), model.isGroup(node) ? () => below(node).map(of) : null);
    return model.roots.map(of);
  }

  sources() {
    const files = new Map();
    this.model.data.ops.location.forEach((number, op) => {
      const match = this.model.text(number).match(/^(.*):(\d+):\d+$/);
      if (!match) return;
      if (!files.has(match[1])) files.set(match[1], new Map());
      push(files.get(match[1]), Number(match[2]), op);
    });
    const line = ([number, ops]) => this.entry(-1, `line ${number} (${ops.length})`, () => ops.map((op) => this.nodeEntry(this.model.nodeOf(op))), ops);
    return [...files].map(([file, lines]) => this.entry(-1, file, () => [...lines].sort((a, b) => a[0] - b[0]).map(line), [...lines.values()].flat()));
  }

  // Layers by the bytes that they send, with the transfers of each; what sends nothing is left out.
  transfers() {
    const { model } = this;
    const run = model.runs[this.state.run];
    const entry = (number) => ({ ...this.entry(model.nodeOf(run.placeOf(number)), this.transferText(run, number)), weight: run.sent(number), key: `transfer ${number}` });
    return run.byLayer(run.allTransfers().filter((number) => run.sent(number))).map(({ layer, list, sent }) => this.entry(-1,
      `${layer}\n${formatBytes(sent)} in ${plural(list.length, "transfer", list.length)}`,
      () => list.sort((a, b) => run.sent(b) - run.sent(a) || a - b).map(entry), [...new Set(list.map((number) => run.placeOf(number)))]));
  }

  // What is sent and why on one line, the op with its layer and parameter and its line of the source on the next.
  transferText(run, number) {
    const { model } = this;
    const { transfers } = run;
    const place = run.placeOf(number);
    const runs = transfers.runs[number] > 1 ? ` ×${formatCount(transfers.runs[number])}` : "";
    const line = model.location(place).replace(/:\d+$/, "").replace(/^.*\//, "");
    const what = `${formatBytes(run.sent(number))} ${run.kindName(number)}${runs} over ${model.text(transfers.axes[number]).replace(/[{}"]/g, "")}`;
    // The row around says the layer.
    const layer = model.layerOf(place);
    const title = [layer, layer.replace(/^forward\//, "")].reduce((text, name) => text.replace(`  ${name}/`, "  ").replace(`  ${name}`, ""), model.title(place, this.state.words));
    return `${what}\n${[title, line].filter(Boolean).join("  ")}`;
  }

  differences() {
    return [...this.model.differing].sort((a, b) => a - b).map((op) => this.entry(this.model.nodeOf(op), this.model.title(op, this.state.words)));
  }

  found() {
    const { model, query } = this;
    const entries = [];
    // Groups first: they are few.
    const total = model.parent.length;
    for (let at = 0; at < total; at += 1) {
      const node = (at + model.count) % total;
      if (node < model.count && model.nodeOf(node) !== node) continue;
      if (this.words(node).includes(query)) entries.push(this.entry(node, model.title(node, this.state.words)));
    }
    return entries;
  }

  // All words by which a node is found, made once.
  words(node) {
    const { model } = this;
    this.known ||= [];
    if (!this.known[node]) {
      const op = model.opOf(node);
      const texts = [model.title(node, "jax"), model.label(node, "mlir")];
      if (op >= 0) texts.push(model.scope(op), model.location(op), ...model.data.ops.outputs[op].map((value) => model.valueName(value)));
      this.known[node] = texts.join("\n").toLowerCase();
    }
    return this.known[node];
  }

  build() {
    const entries = this.query ? this.found() : this.roots[this.kind]();
    this.rows = [];
    const add = (list, level) => list.forEach((entry, at) => {
      const key = `${this.kind} ${level} ${entry.key}`;
      const isOpen = Boolean(entry.inside) && (this.open.get(key) ?? (level === 1 && at === 0));
      this.rows.push({ ...entry, key, level, isOpen, at: at + 1, of: list.length });
      if (isOpen) add(entry.inside(), level + 1);
    });
    add(entries, 1);
    this.active = Math.min(this.active ?? 0, Math.max(0, this.rows.length - 1));
    this.space.style.height = `${this.rows.length * this.high}px`;
    this.list.setAttribute("aria-label", this.query ? `${this.rows.length} found` : "Program");
    this.paint();
  }

  // Opens the way to the chosen node.
  follow() {
    const { chosen } = this.state;
    if (this.query || this.kind !== "layers" || chosen < 0) { this.paint(); return; }
    this.model.ancestors(chosen).reverse().forEach((node, depth) => {
      this.open.set(`layers ${depth + 1} ${node} ${this.model.title(node, this.state.words)}`, true);
    });
    this.build();
    const at = this.rows.findIndex((row) => row.node === chosen);
    if (at >= 0) this.activate(at, false);
  }

  paint() {
    const { scrollTop, clientHeight } = this.list;
    const first = Math.max(0, Math.floor(scrollTop / this.high) - 4);
    const last = Math.min(this.rows.length, Math.ceil((scrollTop + clientHeight) / this.high) + 4);
    const weights = this.model.runs[this.state.run].weightsOf(this.measure);
    const whole = Math.max(1e-30, ...this.model.roots.map((node) => weights[node]));
    const made = [];
    for (let at = first; at < last; at += 1) made.push(this.row(this.rows[at], at, weights, whole));
    this.space.replaceChildren(...made);
    if (this.rows.length) this.list.setAttribute("aria-activedescendant", `row-${this.active}`);
    else this.list.removeAttribute("aria-activedescendant");
  }

  row(row, at, weights, whole) {
    const { state, model } = this;
    const weight = row.weight ?? (row.ops ? row.ops.reduce((sum, op) => sum + weights[op], 0) : row.node >= 0 ? weights[row.node] : 0);
    const sharding = row.node >= 0 ? state.sharding(row.node, state.run) : null;
    const differs = row.node >= 0 && model.differing.has(model.opOf(row.node));
    const classes = ["row", row.node >= 0 && row.node === state.chosen && "chosen", differs && "differs"].filter(Boolean);
    const amount = this.measure === "time" ? formatSeconds(weight) : formatBytes(weight);
    return make("div", { class: classes.join(" "), id: `row-${at}`, role: "treeitem", "data-row": at, "data-node": row.node, "aria-level": row.level,
      "aria-setsize": row.of, "aria-posinset": row.at, "aria-expanded": row.inside ? String(row.isOpen) : null,
      "aria-selected": String(at === this.active), title: `${row.text.replace("\n", ", ")}: ${amount}`,
      style: `top: ${at * this.high}px; height: ${this.high}px; padding-left: ${4 + (row.level - 1) * 12}px; ${at === this.active ? "outline: 1px dotted var(--accent); outline-offset: -1px" : ""}` },
    make("span", { "data-sign": true, "aria-hidden": "true", style: "width: 12px" }, row.inside ? (row.isOpen ? "▾" : "▸") : ""),
    make("span", { class: "tint", style: `background: ${state.tints.css(sharding)}`, "aria-hidden": "true" }),
    make("span", { class: "name" }, this.parts(row)),
    this.high > ROW ? null : make("span", { class: "weight", role: "img", "aria-label": amount }, make("i", { style: `width: ${Math.min(100, (100 * weight) / whole)}%` })));
  }

  // The text of a row: what an op computes stands out, its layer and parameter follow.
  parts(row) {
    const [line, below] = row.text.split("\n");
    if (below) return [line, make("br"), make("span", { class: "faint" }, below)];
    const where = row.node >= 0 && !row.inside ? this.model.whereOf(row.node) : "";
    const at = where ? row.text.indexOf(`  ${where}`) : -1;
    if (at < 0) return row.text;
    return [row.text.slice(0, at), " ", make("span", { class: "faint" }, row.text.slice(at + 2).replace("  ", " "))];
  }

  click(event) {
    const element = event.target.closest("[data-row]");
    if (!element) return;
    const at = Number(element.dataset.row);
    const row = this.rows[at];
    this.active = at;
    if (event.target.dataset.sign !== undefined && row.inside) this.turn(row, !row.isOpen);
    else if (row.node >= 0) this.state.choose(row.node, { reveal: true });
    else if (row.inside) this.turn(row, !row.isOpen);
  }

  turn(row, isOpen) {
    this.open.set(row.key, isOpen);
    this.build();
  }

  activate(at, announceIt = true) {
    this.active = Math.max(0, Math.min(this.rows.length - 1, at));
    const top = this.active * this.high;
    if (top < this.list.scrollTop) this.list.scrollTop = top;
    else if (top + this.high > this.list.scrollTop + this.list.clientHeight) this.list.scrollTop = top + this.high - this.list.clientHeight;
    this.paint();
    if (announceIt && this.rows[this.active]) announce(this.rows[this.active].text);
  }

  key(event) {
    const row = this.rows[this.active];
    if (!row) return;
    const page = Math.max(1, Math.floor(this.list.clientHeight / this.high) - 1);
    const actions = {
      ArrowDown: () => this.activate(this.active + 1), ArrowUp: () => this.activate(this.active - 1),
      PageDown: () => this.activate(this.active + page), PageUp: () => this.activate(this.active - page),
      Home: () => this.activate(0), End: () => this.activate(this.rows.length - 1),
      ArrowRight: () => (row.inside && !row.isOpen ? this.turn(row, true) : this.activate(this.active + 1)),
      ArrowLeft: () => (row.isOpen ? this.turn(row, false) : this.activate(this.above(row))),
      Enter: () => (row.node >= 0 ? this.state.choose(row.node, { reveal: true }) : row.inside && this.turn(row, !row.isOpen)),
    };
    if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[event.key]();
  }

  above(row) {
    for (let at = this.active - 1; at >= 0; at -= 1) if (this.rows[at].level < row.level) return at;
    return this.active;
  }
}

customElements.define("shardy-tree", Tree);
