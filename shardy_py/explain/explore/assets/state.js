// What the user looks at; panels listen to changes of it.

class State extends EventTarget {
  constructor(model) {
    super();
    this.model = model;
    this.run = 0;
    this.isDouble = false;
    this.chosen = -1;
    this.time = null;
    this.words = "jax";
    this.measure = "memory";
    this.expanded = new Set();
    this.lit = new Set();
    this.tints = new Tints(model);
    this.open();
  }

  // Opens groups, the first of each level first, until there is something to see.
  open() {
    const { model } = this;
    let shown = model.roots.slice(0, 1);
    let total = shown.length;
    while (shown.length) {
      const next = [];
      for (const node of shown) {
        const children = model.childrenOf(node);
        const most = children.some((child) => model.isGroup(child)) ? 40 : 14;
        if (!children.length || total + children.length > most && total > 1) continue;
        if (/arguments|results|repeats|optimizer|part|line/.test(model.groupKind(node))) continue;
        this.expanded.add(node);
        total += children.length;
        next.push(...children.filter((child) => model.isGroup(child)));
      }
      shown = next;
    }
  }

  set(changes) {
    Object.assign(this, changes);
    this.dispatchEvent(new CustomEvent("change", { detail: Object.keys(changes) }));
  }

  choose(node, { reveal = false } = {}) {
    const changes = { chosen: node, lit: new Set() };
    if (reveal && node >= 0) {
      const hidden = this.model.ancestors(node).filter((around) => !this.expanded.has(around));
      if (hidden.length) changes.expanded = new Set([...this.expanded, ...hidden]);
    }
    changes.reveal = reveal;
    this.set(changes);
    announce(this.describe(node));
  }

  toggle(node) {
    if (!this.model.childrenOf(node).length) return;
    const expanded = new Set(this.expanded);
    if (!expanded.delete(node)) expanded.add(node);
    this.set({ expanded, chosen: node, reveal: false });
    announce(`${this.model.label(node, this.words)}: ${expanded.has(node) ? "unfolded" : "folded"}`);
  }

  // The number of the sharding that a node is coloured by: that of its first result.
  sharding(node, run) {
    const op = this.model.isGroup(node) ? this.model.opOf(node) : node;
    if (op < 0) return null;
    const [value] = this.model.data.ops.outputs[op];
    if (value === undefined) return null;
    return this.model.runs[run].replay.sharding(value, this.time);
  }

  describe(node) {
    if (node < 0) return "";
    const { model } = this;
    const name = model.title(node, this.words);
    if (model.isGroup(node)) return `${name}: group of ${model.childrenOf(node).length}`;
    const sharding = this.sharding(node, this.run);
    const text = sharding === null || sharding < 0 ? "no sharding" : model.data.shardings[sharding].dimTexts.join(", ");
    const transfers = model.runs[this.run].transfersAt.get(node) || [];
    const moved = transfers.map((number) => model.runs[this.run].kindName(number)).join(", ");
    return `${name}, ${text ? `[${text}]` : "scalar"}${moved ? `, ${moved}` : ""}`;
  }
}

// A link that chooses a node.
// A long name breaks behind a slash, not within a layer.
function nodeLink(state, node, text) {
  const parts = String(text).split(/(?<=\/)/).flatMap((part, at) => at ? [make("wbr"), part] : [part]);
  return make("button", { class: "link", type: "button", onclick: () => state.choose(node, { reveal: true }) }, parts);
}

function announce(text) { document.getElementById("live").textContent = text; }
