// Colours of shardings: one hue for each axis of the mesh, beside each other where a tensor has several.

class Tints {
  constructor(model) {
    const { hues, meshes, shardings } = model.data;
    this.colors = new Map(Object.entries(hues).map(([name, hue]) => [name, `hsl(${hue} var(--sat) var(--light))`]));
    this.sizes = new Map(meshes.flatMap((mesh) => mesh.axes));
    this.axes = shardings.map((one) => [...new Set(one.dims.flat().map(([name]) => name))].filter((name) => this.colors.has(name)));
    this.mixed = [...new Map(this.axes.filter((axes) => axes.length > 1).map((axes) => [axes.join("+"), axes])).values()];
  }

  axesOf(number) { return number === null || number === undefined || number < 0 ? [] : this.axes[number]; }

  // The colour as CSS; several axes are stripes of one width.
  css(number) {
    const axes = this.axesOf(number);
    if (!axes.length) return "var(--node)";
    if (axes.length === 1) return this.colors.get(axes[0]);
    return `linear-gradient(90deg, ${axes.map((name, at) => `${this.colors.get(name)} ${(100 * at) / axes.length}% ${(100 * (at + 1)) / axes.length}%`).join(", ")})`;
  }

  // The colour as the fill of a shape in a drawing that has `defs`.
  fill(number) {
    const axes = this.axesOf(number);
    return axes.length > 1 ? `url(#tint-${this.idOf(axes)})` : this.css(number);
  }

  idOf(axes) { return this.mixed.findIndex((one) => one.join("+") === axes.join("+")); }

  defs() {
    const stop = (name, at, count) => [at, at + 1].map((end) => draw("stop", { offset: end / count, style: `stop-color: ${this.colors.get(name)}` }));
    return draw("defs", {}, this.mixed.map((axes) => draw("linearGradient", { id: `tint-${this.idOf(axes)}` }, axes.map((name, at) => stop(name, at, axes.length)))));
  }

  legend() {
    return [["not sharded", "var(--node)"], ...[...this.colors].map(([name, color]) => [`${name}${this.sizes.has(name) ? ` ${this.sizes.get(name)}` : ""}`, color])];
  }
}
