// The orders of a sweep by bytes and memory: points that are equal are one, with their names and their count.

class OrdersChart extends HTMLElement {
  start(state) {
    const { sweep } = state.model.data;
    this.hidden = !sweep || !sweep.rows.length;
    if (this.hidden) return;
    this.rows = sweep.rows;
    this.front = this.best();
    this.spots = this.equal();
    this.svg = draw("svg", { class: "chart", role: "group", "aria-label": `${this.rows.length} orders by bytes sent and peak memory, at ${this.spots.length} points; ${this.front.size} orders are best` });
    this.text = make("div", { class: "line", "aria-live": "polite" }, "choose a point");
    this.replaceChildren(make("div", { class: "head" }, make("span", {}, make("b", {}, `${this.rows.length} orders `), "by what they send and hold, the best in red")), this.svg, this.text);
    new ResizeObserver(() => this.paint()).observe(this);
    this.paint();
  }

  // Orders of equal bytes and memory, by the first of them.
  equal() {
    const spots = new Map();
    this.rows.forEach((row, at) => push(spots, `${row.bytes} ${row.memory}`, at));
    return [...spots.values()];
  }

  best() {
    const beats = (a, b) => a.bytes <= b.bytes && a.memory <= b.memory && (a.bytes < b.bytes || a.memory < b.memory);
    return new Set(this.rows.map((_, at) => at).filter((at) => !this.rows.some((other) => beats(other, this.rows[at]))));
  }

  paint() {
    const [width, height, left, top, bottom] = [Math.max(240, this.clientWidth), 190, 62, 14, 158];
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.style.height = `${height}px`;
    const [x, xTicks] = this.scale("bytes", left, width - 16, Math.max(2, (width - left) / 100));
    const [y, yTicks] = this.scale("memory", bottom, top, 4);
    const points = this.spots.map((spot) => ({ spot, x: x(this.rows[spot[0]].bytes), y: y(this.rows[spot[0]].memory) }));
    this.svg.replaceChildren(...axisBelow(xTicks, xTicks.map(formatBytes), x, top, bottom),
      ...axisBeside(yTicks, yTicks.map(formatBytes), y, left, width - 16),
      draw("text", { class: "small", x: left, y: 9 }, "peak memory"), draw("text", { class: "small", x: width - 16, y: height - 7, "text-anchor": "end" }, "bytes that a device sends"),
      ...points.map((point) => this.point(point)), ...this.names(points, width, top, bottom));
  }

  // An axis over the numbers that occur, with room on both sides.
  scale(key, from, to, most) {
    const values = this.rows.map((row) => row[key]);
    const [least, largest] = [Math.min(...values), Math.max(...values)];
    const room = (largest - least) * 0.12 || Math.max(1, largest * 0.1);
    const [low, high] = [Math.max(0, least - room), largest + room];
    return [(value) => from + ((to - from) * (value - low)) / (high - low), roundTicks(low, high, most, true)];
  }

  point({ spot, x, y }) {
    const row = this.rows[spot[0]];
    const isBest = this.front.has(spot[0]);
    const text = this.describe(spot);
    const show = () => { this.text.textContent = text; };
    return draw("g", {}, draw("circle", { cx: x, cy: y, r: 4 + Math.min(6, Math.sqrt(spot.length - 1) * 2), tabindex: 0, role: "button", class: isBest ? "front" : "", "aria-label": text, "data-order": spot.map((at) => this.rows[at].name).join(" "), onclick: show, onfocus: show }, draw("title", {}, text)),
      spot.length > 1 ? draw("text", { class: "count", x, y: y + 3, "text-anchor": "middle", "aria-hidden": "true" }, String(spot.length)) : null);
  }

  // A name at each point, where it hides no other one; many points are named where they are best.
  names(points, width, top, bottom) {
    const taken = points.map(({ x, y }) => [x - 7, y - 7, x + 7, y + 7]);
    const order = [...points].sort((a, b) => Number(this.front.has(b.spot[0])) - Number(this.front.has(a.spot[0])));
    return order.map(({ spot, x, y }) => {
      const text = this.rows[spot[0]].name + (spot.length > 1 ? ` and ${spot.length - 1} more` : "");
      const wide = text.length * 5.6;
      for (const by of [0, 12, -12, 24, -24, 36, -36]) {
        for (const start of [x + 12, x - 12 - wide]) {
          const box = [start, y + by - 8, start + wide, y + by + 4];
          if (start < 64 || box[2] > width - 4 || box[1] < top - 4 || box[3] > bottom || taken.some((one) => box[0] < one[2] && box[2] > one[0] && box[1] < one[3] && box[3] > one[1])) continue;
          taken.push(box);
          return draw("text", { class: "small named", x: start, y: y + by + 3 }, text);
        }
      }
      return null;
    }).filter(Boolean);
  }

  describe(spot) {
    const row = this.rows[spot[0]];
    const changed = [...new Set(spot.map((at) => this.rows[at].changed))].sort((a, b) => a - b).join(" or ");
    return `${spot.map((at) => this.rows[at].name).join(", ")}: ${formatBytes(row.bytes)} sent, peak ${formatBytes(row.memory)}${row.seconds === null ? "" : `, ${formatSeconds(row.seconds)}`}, ${changed} tensors sharded differently`;
  }
}

customElements.define("shardy-orders", OrdersChart);
