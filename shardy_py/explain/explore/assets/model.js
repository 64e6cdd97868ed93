// The program of the page: ops, values and groups by number, with what follows from them.
// A node is an op (its row) or a group (the number of ops plus its row).

class Model {
  constructor(data) {
    this.data = data;
    this.count = data.ops.id.length;
    this.groupCount = data.groups.name.length;
    this.parent = new Int32Array(this.count + this.groupCount);
    this.children = Array.from({ length: this.groupCount }, () => []);
    this.roots = [];
    this.nest();
    this.users = data.values.id.map(() => []);
    data.ops.inputs.forEach((values, op) => values.forEach((value) => this.users[value].push(op)));
    this.valueOfSlot = new Map();
    data.values.slot.forEach((slot, value) => {
      if (slot >= 0 && !this.valueOfSlot.has(slot)) this.valueOfSlot.set(slot, value);
    });
    this.functions = new Map(this.roots.map((node) => [this.groupName(node), node]));
    this.runs = data.runs.map((run) => new Run(this, run));
    this.differing = this.compare();
  }

  text(number) { return this.data.strings[number]; }
  isGroup(node) { return node >= this.count; }
  group(node) { return node - this.count; }

  nest() {
    const { ops, groups } = this.data;
    const first = new Int32Array(this.count + this.groupCount).fill(-1);
    for (let group = 0; group < this.groupCount; group += 1) {
      const own = groups.op[group];
      const around = groups.parent[group];
      this.parent[this.count + group] = around < 0 ? -1 : this.count + around;
      if (own >= 0) first[this.count + group] = own;
    }
    for (let op = 0; op < this.count; op += 1) {
      this.parent[op] = this.count + ops.group[op];
      first[op] = op;
      for (let node = this.parent[op]; node >= 0; node = this.parent[node]) {
        // Updates stand at their last op: compilers move the first to anywhere.
        if (first[node] >= 0 && this.groupKind(node) !== "optimizer") break;
        first[node] = op;
      }
    }
    for (let node = 0; node < this.parent.length; node += 1) {
      // A region op is shown as the group of what is inside.
      if (node < this.count && ops.body[node] >= 0) continue;
      if (this.isGroup(node) && first[node] < 0) continue;
      const around = this.parent[node];
      if (around < 0) this.roots.push(node);
      else this.children[this.group(around)].push(node);
    }
    for (const list of this.children) list.sort((a, b) => first[a] - first[b]);
    this.first = first;
  }

  // The node that stands for an op: itself, or the group of what is inside.
  nodeOf(op) { return this.data.ops.body[op] >= 0 ? this.count + this.data.ops.body[op] : op; }
  opOf(node) { return this.isGroup(node) ? this.data.groups.op[this.group(node)] : node; }
  childrenOf(node) { return this.isGroup(node) ? this.children[this.group(node)] : []; }
  groupName(node) { return this.text(this.data.groups.name[this.group(node)]); }
  groupKind(node) { return this.text(this.data.groups.kind[this.group(node)]); }

  opsIn(node) {
    if (!this.isGroup(node)) return [node];
    const found = [];
    const pending = [node];
    while (pending.length) {
      const one = pending.pop();
      if (this.isGroup(one)) {
        if (this.opOf(one) >= 0) found.push(this.opOf(one));
        pending.push(...this.childrenOf(one));
      } else found.push(one);
    }
    return found.sort((a, b) => a - b);
  }

  ancestors(node) {
    const found = [];
    for (let one = this.parent[node]; one >= 0; one = this.parent[one]) found.push(one);
    return found;
  }

  valueName(value) {
    return this.text(this.data.values.name[value]) || this.opName(this.data.values.op[value]);
  }

  slotName(slot) { return slot < 0 ? "-" : this.text(this.data.slots[slot]); }
  opName(op) { return this.text(this.data.ops.name[op]); }
  location(op) { return this.text(this.data.ops.location[op]); }
  scope(op) { return this.text(this.data.ops.scope[op]); }
  typeOf(value) { return this.data.types[this.data.values.type[value]]; }

  // The name of a node, in the words of JAX or of MLIR.
  label(node, words) {
    if (this.isGroup(node)) {
      const op = this.opOf(node);
      return op >= 0 && words === "mlir" ? this.mlirName(op) : this.groupName(node);
    }
    if (this.data.ops.kind[node]) return this.valueName(this.data.ops.outputs[node][0]);
    if (words === "mlir") return this.mlirName(node);
    return this.text(this.data.ops.what[node]);
  }

  // The layer and the parameter of an op, and what tells it from others of the same label.
  whereOf(node) {
    const op = this.isGroup(node) ? -1 : node;
    return op < 0 || this.data.ops.kind[op] ? "" : this.text(this.data.ops.where[op]);
  }

  // The innermost layers around an op, without its parameter.
  layerOf(op) {
    const layers = this.ancestors(this.nodeOf(op)).filter((node) => /^(layer|repeat|optimizer)$/.test(this.groupKind(node))).reverse();
    return layers.length ? layers.map((node) => this.groupName(node)).join("/") : this.groupName(this.ancestors(op)[0]);
  }

  markOf(node) { return this.isGroup(node) || this.data.ops.kind[node] ? "" : this.text(this.data.ops.mark[node]); }

  // What an op computes, in which layer and with which parameter.
  title(node, words) { return [this.label(node, words), this.whereOf(node), words === "mlir" ? "" : this.markOf(node)].filter(Boolean).join("  "); }

  mlirName(op) {
    const names = this.data.ops.outputs[op].map((value) => this.text(this.data.values.name[value])).filter(Boolean);
    return names.length ? `${names.join(", ")} = ${this.opName(op)}` : this.opName(op);
  }

  // Ops whose results are sharded differently by another order or plan, or that need other transfers.
  compare() {
    const found = new Set();
    if (this.runs.length < 2) return found;
    const [one, ...others] = this.runs;
    const kinds = (run, at) => (run.transfersAt.get(at) || []).map((n) => run.transferKey(n)).sort().join();
    for (const two of others) {
      this.data.ops.outputs.forEach((values, op) => {
        if (values.some((value) => !this.sameSharding(one.shardings[value], two.shardings[value]))) found.add(op);
      });
      for (const op of [...one.transfersAt.keys(), ...two.transfersAt.keys()]) if (kinds(one, op) !== kinds(two, op)) found.add(op);
    }
    return found;
  }

  sameSharding(first, second) {
    const text = (number) => {
      if (number < 0) return "";
      const dims = JSON.stringify(this.data.shardings[number].dims);
      return /[^[\],]/.test(dims) ? dims : "";
    };
    return first === second || text(first) === text(second);
  }
}

// One order: shardings, transfers, costs.
class Run {
  constructor(model, data) {
    this.model = model;
    this.name = data.name;
    this.data = data;
    this.shardings = data.shardings;
    this.local = data.local;
    this.quantities = data.quantities;
    this.transfers = data.transfers;
    this.transfersAt = new Map();
    this.transfersOfValue = new Map();
    const { transfers } = this;
    transfers.kind.forEach((_, number) => {
      const at = this.placeOf(number);
      // What sends nothing is no transfer on the page: cutting a tensor costs no communication.
      if (at >= 0 && transfers.bytes[number] !== 0) push(this.transfersAt, at, number);
      if (transfers.value[number] >= 0) push(this.transfersOfValue, transfers.value[number], number);
    });
    this.replay = new Replay(model, data.replay, this);
    this.weights = new Map();
  }

  kind(number) { return this.model.text(this.transfers.kind[number]); }
  kindName(number) { return this.kind(number).replace(/_/g, "-"); }
  transferKey(number) { return `${this.kind(number)} ${this.model.text(this.transfers.axes[number])} ${this.transfers.bytes[number]}`; }
  sent(number) { return this.transfers.bytes[number] * this.transfers.runs[number]; }
  sentBy(numbers) { return numbers.reduce((sum, number) => sum + this.sent(number), 0); }
  seconds(number) { return (this.transfers.seconds[number] || 0) * this.transfers.runs[number]; }
  allTransfers() { return [...this.transfersAt.values()].flat(); }

  // Layers with the numbers of their transfers and what these send, those that send most first.
  byLayer(numbers) {
    const layers = new Map();
    for (const number of numbers) push(layers, this.model.layerOf(this.placeOf(number)), number);
    return [...layers].map(([layer, list]) => ({ layer, list, sent: this.sentBy(list) })).sort((a, b) => b.sent - a.sent);
  }

  // The op where a transfer is shown: what it makes whole, else the first op that wants it.
  placeOf(number) {
    const { op, value, users } = this.transfers;
    if (op[number] >= 0) return op[number];
    const producer = value[number] >= 0 ? this.model.data.values.op[value[number]] : -1;
    if (/all_reduce|reduce_scatter/.test(this.kind(number)) && producer >= 0) return producer;
    return users[number].length ? users[number][0] : producer;
  }

  // A number for each node, summed over what is inside.
  weightsOf(measure) {
    if (this.weights.has(measure)) return this.weights.get(measure);
    const { model } = this;
    const found = new Float64Array(model.count + model.groupCount);
    const add = (op, value) => {
      if (!value) return;
      found[op] += value;
      const node = model.nodeOf(op);
      if (node !== op) found[node] += value;
      for (let around = model.parent[node]; around >= 0; around = model.parent[around]) found[around] += value;
    };
    const { transfers, local, data } = this;
    if (measure === "memory") {
      model.data.ops.outputs.forEach((values, op) => add(op, values.reduce((sum, value) => sum + local[value], 0)));
    } else {
      const of = measure === "time" ? (n) => this.seconds(n) : (n) => this.sent(n);
      transfers.kind.forEach((_, number) => { const at = this.placeOf(number); if (at >= 0) add(at, of(number)); });
      if (measure === "time" && data.seconds) data.seconds.forEach((value, op) => add(op, value));
    }
    this.weights.set(measure, found);
    return found;
  }
}

function push(map, key, item) {
  const list = map.get(key);
  if (list) list.push(item);
  else map.set(key, [item]);
}
