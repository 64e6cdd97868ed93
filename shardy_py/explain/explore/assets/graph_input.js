// Pointer and keys of the graph.

Object.assign(Graph.prototype, {
  listen() {
    const { svg } = this;
    svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = svg.getBoundingClientRect();
      if (event.ctrlKey || !event.shiftKey) this.zoom(Math.exp(-event.deltaY / 500), [event.clientX - box.left, event.clientY - box.top]);
      else this.show(this.view.scale, this.view.x - event.deltaY, this.view.y);
    }, { passive: false });
    svg.addEventListener("pointerdown", (event) => this.press(event));
    svg.addEventListener("dblclick", (event) => {
      const node = this.nodeAt(event);
      if (node >= 0) this.state.toggle(node);
    });
    svg.addEventListener("keydown", (event) => this.key(event));
  },

  nodeAt(event) {
    const element = event.target.closest("[data-node]");
    return element ? Number(element.dataset.node) : -1;
  },

  press(event) {
    const { svg } = this;
    const start = [event.clientX, event.clientY, this.view.x, this.view.y];
    let moved = false;
    const move = (next) => {
      const [dx, dy] = [next.clientX - start[0], next.clientY - start[1]];
      if (!moved && Math.hypot(dx, dy) < 4) return;
      moved = true;
      this.show(this.view.scale, start[2] + dx, start[3] + dy);
    };
    const up = (next) => {
      svg.removeEventListener("pointermove", move);
      if (!moved) this.click(event, next);
    };
    svg.addEventListener("pointermove", move);
    window.addEventListener("pointerup", up, { once: true });
  },

  click(event) {
    const node = this.nodeAt(event);
    if (node < 0) return;
    const box = event.target.closest("[data-node]");
    const isSign = this.model.isGroup(node) && event.target.tagName === "text" && event.target === box.querySelector("text");
    if (isSign) this.state.toggle(node);
    else this.state.choose(node);
  },

  key(event) {
    const { state, model } = this;
    const { chosen } = state;
    const node = this.visible.rep(chosen >= 0 ? chosen : model.roots[0]);
    const actions = {
      "+": () => this.zoom(1.3), "=": () => this.zoom(1.3), "-": () => this.zoom(1 / 1.3), 0: () => this.fit(),
      Enter: () => state.toggle(node), " ": () => state.toggle(node),
      ArrowUp: () => this.go(this.along(node, "source")), ArrowDown: () => this.go(this.along(node, "target")),
      ArrowLeft: () => this.go(this.beside(node, -1)), ArrowRight: () => this.go(this.beside(node, 1)),
      Escape: () => this.go(model.parent[node]),
    };
    if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[event.key]();
  },

  go(node) {
    if (node !== undefined && node >= 0) this.state.choose(node, { reveal: true });
  },

  // The closest node at the other end of an edge; inside an unfolded group, its first or last node.
  along(node, end) {
    const other = end === "source" ? "target" : "source";
    if (this.state.expanded.has(node) && end === "target") return this.model.childrenOf(node)[0];
    const ends = (this.touching.get(node) || []).filter((edge) => edge[other] === node).map((edge) => edge[end]);
    if (!ends.length) return this.beside(node, end === "source" ? -1 : 1);
    const distance = (one) => Math.abs(this.model.first[one] - this.model.first[node]);
    return ends.reduce((best, one) => (distance(one) < distance(best) ? one : best));
  },

  beside(node, step) {
    const around = this.model.parent[node];
    const siblings = around < 0 ? this.model.roots : this.model.childrenOf(around);
    return siblings[siblings.indexOf(node) + step];
  },
});

customElements.define("shardy-graph", Graph);
