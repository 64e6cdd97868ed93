// Time on a machine: computing and communicating one after the other, below the layers that they belong to.

class TimeChart extends ZoomChart {
  get name() { return "time"; }
  get least() { return this.extent / 4096; }

  read(run) {
    if (run.quantities.seconds.value === null) return false;
    this.run = run;
    this.pieces = timedPieces(run);
    this.extent = this.pieces.length ? this.pieces[this.pieces.length - 1].end : 0;
    this.spans = this.layerSpans(this.pieces);
    return this.extent > 0;
  }

  figures() {
    const { quantities } = this.run;
    return ["seconds", "compute_seconds", "communication_seconds"].map((name) => formatQuantity(quantities[name]));
  }

  describe() {
    const [all, compute, moved] = this.figures();
    return `Time on ${this.model.data.machine}: ${all}, computing ${compute}, communicating ${moved}. Plus and minus zoom, arrow keys move.`;
  }

  head() {
    const [all, compute, moved] = this.figures();
    return make("span", {}, make("b", {}, "Time "), `${all} on ${this.model.data.machine}: `, make("span", { class: "key" }, swatch("--accent"), `computing ${compute}`), " ", make("span", { class: "key" }, swatch("--moved"), `communicating ${moved}`));
  }

  buttons() {
    const tools = super.buttons();
    tools.append(make("button", { type: "button", title: "Save the times as a trace that ui.perfetto.dev opens", onclick: () => saveTrace(this.state, this.pieces, this.spans.flat()) }, "Perfetto"));
    return tools;
  }

  foot() {
    this.text = make("div", { class: "line" }, "Choose a piece.");
    return [this.text];
  }

  keys() {
    return { ArrowLeft: () => this.move(-0.2), ArrowRight: () => this.move(0.2), Home: () => this.look(0, this.extent) };
  }

  pick(at) {
    const piece = this.pieces.find((one) => one.end >= at);
    if (!piece) return;
    this.text.textContent = `${this.textOf(piece)}: ${formatSeconds(piece.end - piece.start)}, from ${formatSeconds(piece.start)}`;
    this.state.choose(this.model.nodeOf(piece.op), { reveal: true });
  }

  textOf({ op, transfer }) {
    const title = this.model.title(op, this.state.words);
    return transfer < 0 ? title : `${this.run.kindName(transfer)}, ${formatBytes(this.run.sent(transfer))}, ${title}`;
  }

  shapes(x, low, high) {
    const bottom = this.height - 16;
    const ticks = roundTicks(low, high, Math.max(2, this.inner / 90));
    const seen = this.pieces.filter(({ start, end }) => end > low && start < high);
    const lane = (name, y) => [draw("text", { class: "small", x: this.left - 4, y: y + 16, "text-anchor": "end" }, name), ...this.lane(seen, name, y, x)];
    return [...this.bands(x, low, high), ...axisBelow(ticks, secondsAtTicks(ticks), x, 36, bottom), ...lane("compute", 42), ...lane("transfer", 80)];
  }

  // One shape for all pieces of a lane, with the names of those that are wide enough.
  lane(pieces, name, y, x) {
    const [from, to] = [this.left, this.left + this.inner];
    let path = "";
    let open = null;
    const names = [];
    const flush = () => { if (open) path += `M${open[0].toFixed(1)} ${y}H${Math.max(open[1], open[0] + 0.6).toFixed(1)}v26H${open[0].toFixed(1)}Z`; };
    for (const piece of pieces) {
      if ((piece.transfer < 0) !== (name === "compute")) continue;
      const [left, right] = [Math.max(from, x(piece.start)), Math.min(to, x(piece.end))];
      const room = Math.floor((right - left - 6) / 5.6);
      if (room > 5) names.push(draw("text", { class: "small on", x: left + 3, y: y + 16 }, shorten(this.textOf(piece), room)));
      // Pieces that are told apart have a gap; the others are one.
      if (open && left - open[1] < 0.3 && right - left < 3) open[1] = right;
      else { flush(); open = [left, right - (right - left > 3 ? 0.7 : 0)]; }
    }
    flush();
    return [draw("path", { class: name, d: path }), ...names];
  }
}

// What happens one after the other: computing at an op, then the transfers there.
function timedPieces(run) {
  const pieces = [];
  let now = 0;
  const add = (op, transfer, seconds) => {
    if (!seconds) return;
    pieces.push({ op, transfer, start: now, end: now + seconds });
    now += seconds;
  };
  for (let op = 0; op < run.model.count; op += 1) {
    add(op, -1, run.data.seconds[op]);
    for (const number of run.transfersAt.get(op) || []) add(op, number, run.seconds(number));
  }
  return pieces;
}

function swatch(color) {
  return make("span", { "aria-hidden": "true", style: `display: inline-block; width: 9px; height: 9px; margin-right: 3px; background: var(${color})` });
}

customElements.define("shardy-time", TimeChart);
