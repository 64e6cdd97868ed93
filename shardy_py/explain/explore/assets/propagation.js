// The slider that replays propagation.

class ReplaySlider extends HTMLElement {
  start(state) {
    this.state = state;
    this.output = make("output", {});
    this.slider = make("input", { type: "range", min: 0, "aria-label": "Updates of the propagation", oninput: () => this.go(Number(this.slider.value)) });
    const button = (text, name, action) => make("button", { type: "button", "aria-label": name, title: name, onclick: action }, text);
    this.play = button("▶", "Play", () => this.toggle());
    this.replaceChildren(make("div", { class: "line" }, make("label", {}, "Propagation"), button("|◀", "To the annotations", () => this.go(0)),
      button("◀◀", "Level before", () => this.go(this.border(-1))), button("◀", "Update before", () => this.go(this.at - 1)), this.play,
      button("▶|", "Next update", () => this.go(this.at + 1)), button("▶▶", "Next level", () => this.go(this.border(1))), this.slider,
      button("End", "To the finished program", () => this.go(this.replay.length)), button("Show", "Show the op of the update", () => this.showOp())), this.output);
    state.addEventListener("change", ({ detail }) => { if (detail.includes("time") || detail.includes("run")) this.paint(); });
    this.paint();
  }

  get replay() { return this.state.model.runs[this.state.run].replay; }
  get at() { return this.state.time ?? this.replay.length; }

  go(time) {
    const { length } = this.replay;
    this.state.set({ time: time >= length ? null : Math.max(0, time), reveal: false });
  }

  // The number of updates before the next level, or the level before.
  border(step) {
    const { level, priority } = this.replay.data.updates;
    const key = (update) => `${priority[update]} ${level[update]}`;
    let at = step > 0 ? this.at : this.at - 1;
    if (step > 0) {
      while (at < this.replay.length && at > 0 && key(at) === key(at - 1)) at += 1;
      return at === this.at ? this.border2(at) : at;
    }
    while (at > 0 && key(at) === key(at - 1)) at -= 1;
    return at;
  }

  border2(at) {
    const { level, priority } = this.replay.data.updates;
    let next = at + 1;
    while (next < this.replay.length && level[next] === level[next - 1] && priority[next] === priority[next - 1]) next += 1;
    return next;
  }

  toggle() {
    if (this.timer) {
      clearInterval(this.timer);
      this.timer = 0;
    } else {
      if (this.at >= this.replay.length) this.go(0);
      this.timer = setInterval(() => {
        this.go(this.at + 1);
        if (this.at >= this.replay.length) this.toggle();
      }, 120);
    }
    this.play.textContent = this.timer ? "❚❚" : "▶";
    this.play.setAttribute("aria-label", this.timer ? "Pause" : "Play");
  }

  showOp() {
    const update = this.at - 1;
    const op = update >= 0 && this.replay.length ? this.replay.data.updates.op[Math.min(update, this.replay.length - 1)] : -1;
    if (op >= 0) this.state.choose(this.state.model.nodeOf(op), { reveal: true });
  }

  paint() {
    this.slider.max = this.replay.length;
    this.slider.value = this.at;
    const text = this.replay.describe(this.state.time);
    this.slider.setAttribute("aria-valuetext", text);
    this.output.textContent = text;
    this.output.title = text;
  }
}

customElements.define("shardy-replay", ReplaySlider);
