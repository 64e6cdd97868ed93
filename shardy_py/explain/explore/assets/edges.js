// Edges between visible nodes, with the bytes that move along each, and the lines that they are drawn as.

const LANE = { first: 14, step: 7, count: 6, corner: 8, near: 64 };

const NONE = [];

// All edges between visible nodes, and the same in bundles: one between the two nodes beside each other that hold the ends.
class VisibleEdges {
  constructor(model, edges, places, run) {
    this.model = model;
    this.edges = edges;
    this.shown = new Int32Array(model.parent.length).fill(-2);
    this.places = places;
    this.run = run;
    const [each, bundled] = [new Map(), new Map()];
    for (let edge = 0; edge < edges.from.length; edge += 1) {
      const source = this.rep(edges.from[edge]);
      const target = this.rep(edges.to[edge]);
      if (source === target || source < 0 || target < 0) continue;
      const numbers = this.numbersOf(edges.value[edge], edges.user[edge]);
      this.count(each, source, target, numbers);
      this.count(bundled, ...this.beside(source, target), numbers);
    }
    this.each = [...each.values()];
    this.bundled = [...bundled.values()];
    this.largest = this.bundled.reduce((most, edge) => Math.max(most, edge.moved), 1);
  }

  // The visible node that stands for a node: itself, or a group around it.
  rep(node) {
    if (this.shown[node] === -2) {
      const around = this.model.parent[node];
      const above = around < 0 ? -1 : this.rep(around);
      this.shown[node] = this.places.has(node) ? node : above;
    }
    return this.shown[node];
  }

  // The two nodes directly in one group that hold the ends of an edge.
  beside(source, target) {
    const { parent } = this.model;
    while (this.edges.depthOf(source) > this.edges.depthOf(target)) source = parent[source];
    while (this.edges.depthOf(target) > this.edges.depthOf(source)) target = parent[target];
    while (source !== target && parent[source] !== parent[target]) {
      source = parent[source];
      target = parent[target];
    }
    return [source, target];
  }

  // The transfers on an edge: those that its user wants, and those of all who use the value.
  numbersOf(value, user) {
    const { run } = this;
    const all = run.transfersOfValue.get(value);
    return all ? all.filter((number) => !run.transfers.users[number].length || run.transfers.users[number].includes(user)) : NONE;
  }

  // Counts an edge and its transfers among those that are known.
  count(known, source, target, numbers) {
    if (source === target) return;
    const key = source * this.model.parent.length + target;
    let edge = known.get(key);
    if (!edge) known.set(key, edge = { source, target, moved: 0, numbers: new Set() });
    this.addTransfers(edge, numbers);
  }

  // Adds transfers to an edge, each once.
  addTransfers(edge, numbers) {
    for (const number of numbers) {
      if (edge.numbers.has(number)) continue;
      edge.numbers.add(number);
      edge.moved += this.run.sent(number);
    }
  }
}

// The line of an edge: straight down to a node close below, else along a lane at the side of what is between.
function edgePath(from, to, lane) {
  const start = [from.x + from.width / 2, from.y + from.height];
  const end = [to.x + to.width / 2, to.y];
  const gap = end[1] - start[1];
  if (gap > 0 && (gap < LANE.near || lane === null)) {
    const bend = Math.min(80, gap / 2);
    return `M${start[0]} ${start[1]}C${start[0]} ${start[1] + bend} ${end[0]} ${end[1] - bend} ${end[0]} ${end[1]}`;
  }
  const [right, other] = [from.x + from.width, to.x + to.width];
  const x = lane ?? Math.max(right, other) + LANE.first;
  const [y, below] = [from.y + from.height - 12, to.y + 12];
  const turn = below > y ? LANE.corner : -LANE.corner;
  return `M${right} ${y}H${x - LANE.corner}Q${x} ${y} ${x} ${y + turn}V${below - turn}Q${x} ${below} ${x - LANE.corner} ${below}H${other}`;
}
