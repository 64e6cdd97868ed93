// Memory of a device over the main function: one line, whose highest point is the peak of the cost.

class MemoryChart extends ZoomChart {
  get name() { return "memory"; }
  get least() { return Math.min(8, this.extent / 2); }

  read(run) {
    const { memory } = run.data;
    if (!memory || memory.bytes.length < 2) return false;
    this.memory = memory;
    this.extent = memory.bytes.length - 1;
    this.most = Math.max(...memory.bytes, 1);
    this.peak = memory.bytes.indexOf(this.most);
    this.chosen = this.peak;
    const pieces = memory.op.map((op, at) => ({ op, start: Math.max(0, at - 0.5), end: at + 0.5 }));
    this.spans = this.layerSpans(pieces);
    return true;
  }

  describe() {
    return `Memory of a device over the main function: at most ${formatBytes(this.most)} at ${this.opName(this.peak)}. Arrow keys move along it, plus and minus zoom.`;
  }

  head() {
    return make("span", {}, make("b", {}, "Memory "), make("button", { class: "link", type: "button", onclick: () => this.show(this.peak) }, `peak ${formatBytes(this.most)}`), " on a device, with fusion");
  }

  foot() {
    this.text = make("div", { class: "line" });
    this.tell();
    return [this.text];
  }

  keys() {
    const by = (step) => () => this.show(this.chosen + step);
    return { ArrowLeft: by(-1), ArrowRight: by(1), PageUp: by(-50), PageDown: by(50), Home: () => this.show(this.peak) };
  }

  pick(at) { this.show(Math.round(at)); }

  shapes(x, low, high) {
    const { bytes } = this.memory;
    const [top, bottom] = [36, this.height - 16];
    const y = (value) => bottom - ((bottom - top) * value) / this.most;
    const [first, last] = [Math.max(0, Math.floor(low)), Math.min(bytes.length - 1, Math.ceil(high))];
    const line = this.outline(bytes, first, last, x, y);
    const levels = roundTicks(0, this.most, 3, true);
    const steps = roundTicks(low, high, Math.max(2, this.inner / 90));
    const clip = draw("clipPath", { id: "memory-clip" }, draw("rect", { x: this.left, y: 0, width: this.inner, height: this.height }));
    return [clip, ...this.bands(x, low, high), ...axisBeside(levels, levels.map(formatBytes), y, this.left, this.left + this.inner),
      ...axisBelow(steps, steps.map((step) => `op ${step}`), x, top, bottom),
      draw("g", { "clip-path": "url(#memory-clip)" }, draw("path", { class: "area", d: `${line}V${bottom}H${x(first).toFixed(1)}Z` }),
        draw("line", { class: "mark", x1: x(this.chosen), x2: x(this.chosen), y1: top - 4, y2: bottom }),
        draw("circle", { class: "peak", cx: x(this.peak), cy: y(this.most), r: 3 }, draw("title", {}, `peak ${formatBytes(this.most)}`)))];
  }

  // The line; of the steps that share a pixel, the highest.
  outline(bytes, first, last, x, y) {
    const points = [];
    let [pixel, most] = [-1, 0];
    for (let at = first; at <= last; at += 1) {
      const here = Math.round(x(at));
      if (here === pixel) { most = Math.max(most, bytes[at]); points[points.length - 1] = [here, y(most)]; } else {
        [pixel, most] = [here, bytes[at]];
        points.push([here, y(most)]);
      }
    }
    return points.map(([px, py], at) => `${at ? "L" : "M"}${px} ${py.toFixed(1)}`).join("");
  }

  opName(at) { return this.memory.op[at] < 0 ? "the end" : this.model.title(this.memory.op[at], this.state.words); }

  show(at) {
    this.chosen = Math.max(0, Math.min(this.extent, at));
    const [low, high] = this.view;
    if (this.chosen < low || this.chosen > high) this.look(this.chosen - (high - low) / 2, this.chosen + (high - low) / 2);
    this.tell();
    this.later();
  }

  tell() {
    const { memory, model, state } = this;
    const live = this.live(this.chosen);
    const held = live.reduce((sum, number) => sum + memory.held[number], 0);
    const tensor = (number) => nodeLink(state, model.nodeOf(model.data.values.op[memory.value[number]]), `${this.tensorName(memory.value[number])} ${formatBytes(memory.held[number])}`);
    const op = memory.op[this.chosen];
    const rest = memory.bytes[this.chosen] - held;
    this.text.replaceChildren(`${formatBytes(memory.bytes[this.chosen])} at `, op < 0 ? "the end" : nodeLink(state, model.nodeOf(op), this.opName(this.chosen)),
      `; ${plural(live.length, "tensor", live.length)} live${rest > 0 ? `, ${formatBytes(rest)} besides` : ""}, the largest: `, ...live.slice(0, 4).flatMap((number, at) => [at ? ", " : "", tensor(number)]));
  }

  // The user's name of a tensor, else the op that makes it.
  tensorName(value) {
    const op = this.model.data.values.op[value];
    return this.model.data.ops.kind[op] ? this.model.valueName(value) : this.model.title(op, this.state.words);
  }

  live(at) {
    const { memory } = this;
    const numbers = memory.value.map((_, number) => number).filter((number) => memory.from[number] <= at && at <= memory.to[number]);
    return numbers.sort((a, b) => memory.held[b] - memory.held[a] || a - b);
  }
}

customElements.define("shardy-memory", MemoryChart);
