// Places of nodes. The order of the program decides: a node stands below all it uses, in the order of the ops.

const NODE = { width: 206, height: 38, gapX: 18, gapY: 30, gapColumns: 60, header: 26, padding: 16, lanes: 56, across: 1150, aspect: 1.2 };

// The edges of the program, and for each group those between the nodes directly in it.
class Edges {
  constructor(model) {
    this.model = model;
    this.from = [];
    this.to = [];
    this.value = [];
    this.user = [];
    this.between = new Map();
    const { values } = model.data;
    this.depth = new Int32Array(model.parent.length).fill(-1);
    model.users.forEach((users, value) => {
      const source = model.nodeOf(values.op[value]);
      for (const user of users) {
        const target = model.nodeOf(user);
        if (source !== target) this.add(source, target, value, user);
      }
    });
    this.addBodies();
  }

  // Joins what a region op takes with the ops inside that use it: drawn at the group, not inside.
  addBodies() {
    const { functions, data } = this.model;
    data.ops.callee.forEach((callee, op) => {
      const target = callee < 0 ? undefined : functions.get(this.model.text(callee));
      if (target !== undefined) this.lift(op, target);
    });
  }

  add(source, target, value, user) {
    this.from.push(source);
    this.to.push(target);
    this.value.push(value);
    this.user.push(user);
    this.lift(source, target);
  }

  // Notes an edge between the nodes that stand beside each other around its ends.
  lift(source, target) {
    const { parent } = this.model;
    while (this.depthOf(source) > this.depthOf(target)) source = parent[source];
    while (this.depthOf(target) > this.depthOf(source)) target = parent[target];
    while (source !== target && parent[source] !== parent[target]) {
      source = parent[source];
      target = parent[target];
    }
    if (source !== target) push(this.between, parent[source], [source, target]);
  }

  depthOf(node) {
    if (this.depth[node] < 0) {
      const around = this.model.parent[node];
      this.depth[node] = around < 0 ? 0 : this.depthOf(around) + 1;
    }
    return this.depth[node];
  }
}

// Places of all visible nodes: x, y, width and height, from the left upper corner.
class Layout {
  constructor(model, edges, expanded) {
    this.model = model;
    this.edges = edges;
    this.expanded = expanded;
    this.places = new Map();
    const whole = this.arrange(-1, model.roots);
    this.width = whole.width;
    this.height = whole.height;
    this.settle(whole, 0, 0);
  }

  // Returns the size of some nodes beside and below each other, with their places in it.
  arrange(around, nodes) {
    const rows = this.wrap(this.ranks(around, nodes)).map((row) => this.lined(row));
    const isPlain = around >= 0 && !nodes.some((node) => this.model.isGroup(node));
    const columns = isPlain ? this.columns(rows) : [rows];
    const items = [];
    let left = 0;
    let height = 0;
    for (const column of columns) {
      const width = Math.max(0, ...column.map((row) => row.width));
      let top = 0;
      for (const row of column) {
        for (const item of row.items) items.push(Object.assign(item, { x: item.x + left + (width - row.width) / 2, y: top }));
        top += row.height + NODE.gapY;
      }
      height = Math.max(height, top - NODE.gapY);
      left += width + NODE.gapColumns;
    }
    return { items, width: Math.max(0, left - NODE.gapColumns), height };
  }

  lined(row) {
    let x = 0;
    let height = 0;
    for (const item of row) {
      item.x = x;
      x += item.width + NODE.gapX;
      height = Math.max(height, item.height);
    }
    return { items: row, width: x - NODE.gapX, height };
  }

  // Breaks what would be much higher than wide into columns, to be read one after the other.
  columns(rows) {
    const height = rows.reduce((sum, row) => sum + row.height + NODE.gapY, 0);
    const width = Math.max(1, ...rows.map((row) => row.width));
    const count = Math.floor(Math.sqrt(height / (NODE.aspect * width)));
    if (count < 2 || height < NODE.across) return [rows];
    const found = [];
    let column = [];
    let filled = 0;
    for (const row of rows) {
      if (column.length && filled + row.height / 2 > height / count) {
        found.push(column);
        column = [];
        filled = 0;
      }
      column.push(row);
      filled += row.height + NODE.gapY;
    }
    return [...found, column];
  }

  sized(node) {
    if (!this.expanded.has(node)) {
      return { node, width: NODE.width, height: this.model.isGroup(node) ? NODE.height + 8 : NODE.height };
    }
    const inside = this.arrange(node, this.model.childrenOf(node));
    const space = this.model.childrenOf(node).some((child) => this.model.isGroup(child)) ? NODE.lanes : 0;
    return { node, inside, width: Math.max(NODE.width, inside.width + 2 * (NODE.padding + space)), height: inside.height + NODE.header + 2 * NODE.padding };
  }

  // Returns the rows of nodes in program order: each group is a row, the ops between two groups are ranked.
  ranks(around, nodes) {
    const rows = [];
    let ops = [];
    const flush = () => { if (ops.length) rows.push(...this.ranksOf(around, ops)); ops = []; };
    for (const node of nodes) {
      if (!this.model.isGroup(node) || around < 0) ops.push(node);
      else { flush(); rows.push([this.sized(node)]); }
    }
    flush();
    return rows;
  }

  // Returns nodes by rank: the longest path to them along edges that go forward in the program.
  ranksOf(around, nodes) {
    const at = new Map(nodes.map((node, index) => [node, index]));
    const pairs = (this.edges.between.get(around) || []).map(([a, b]) => [at.get(a), at.get(b)]).filter(([a, b]) => a < b);
    pairs.sort((one, two) => one[0] - two[0]);
    const rank = new Int32Array(nodes.length);
    const uses = nodes.map(() => []);
    for (const [a, b] of pairs) {
      rank[b] = Math.max(rank[b], rank[a] + 1);
      uses[b].push(a);
    }
    const fed = new Set(pairs.map(([, b]) => b));
    const earliest = new Map();
    for (const [a, b] of pairs) earliest.set(a, Math.min(earliest.get(a) ?? Infinity, rank[b]));
    nodes.forEach((_, index) => {
      // What uses nothing stands right above its first user.
      if (!fed.has(index) && earliest.has(index)) rank[index] = Math.max(0, earliest.get(index) - 1);
    });
    return this.ordered(nodes, rank, uses);
  }

  ordered(nodes, rank, uses) {
    const rows = [];
    nodes.forEach((_, index) => { (rows[rank[index]] ||= []).push(index); });
    const place = new Float64Array(nodes.length);
    return rows.filter(Boolean).map((row) => {
      const mean = (index) => uses[index].length
        ? uses[index].reduce((sum, one) => sum + place[one], 0) / uses[index].length : 0.5;
      const wanted = new Map(row.map((index) => [index, mean(index)]));
      row.sort((a, b) => wanted.get(a) - wanted.get(b) || a - b);
      row.forEach((index, at) => { place[index] = (at + 0.5) / row.length; });
      return row.map((index) => this.sized(nodes[index]));
    });
  }

  // Breaks rows that are too long.
  wrap(rows) {
    const most = NODE.across;
    const found = [];
    for (const row of rows) {
      let current = [];
      let width = 0;
      for (const one of row) {
        if (current.length && width + one.width > most) {
          found.push(current);
          current = [];
          width = 0;
        }
        current.push(one);
        width += one.width + NODE.gapX;
      }
      found.push(current);
    }
    return found;
  }

  settle({ items }, left, top) {
    for (const item of items) {
      const place = { x: left + item.x, y: top + item.y, width: item.width, height: item.height };
      this.places.set(item.node, place);
      if (item.inside) {
        const space = (item.width - item.inside.width) / 2;
        this.settle(item.inside, place.x + space, place.y + NODE.header + NODE.padding);
      }
    }
  }
}
