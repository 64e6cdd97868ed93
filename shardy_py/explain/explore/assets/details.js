// Details of what is chosen: shardings with their chains, what was refused, transfers, costs, proposals.

class Details extends HTMLElement {
  start(state) {
    this.state = state;
    this.model = state.model;
    state.addEventListener("change", ({ detail }) => {
      if (detail.some((name) => /^(chosen|run|words|time)$/.test(name))) this.paint();
    });
    this.paint();
  }

  get run() { return this.model.runs[this.state.run]; }

  paint() {
    const { chosen } = this.state;
    const parts = chosen < 0 ? this.program() : this.model.opOf(chosen) >= 0 ? this.op(this.model.opOf(chosen), chosen) : this.group(chosen);
    this.replaceChildren(...parts.flat().filter(Boolean));
  }

  link(node, text) {
    return nodeLink(this.state, node, text ?? this.model.label(node, this.state.words));
  }

  valueLink(value) { return this.link(this.model.nodeOf(this.model.data.values.op[value]), this.model.valueName(value)); }

  // What makes a tensor, in words; arguments say it by their name.
  madeBy(value) {
    const op = this.model.data.values.op[value];
    return this.model.data.ops.kind[op] ? "" : this.model.title(op, "jax").replace(this.model.valueName(value), "").trim();
  }

  slotLink(slot) {
    const value = this.model.valueOfSlot.get(slot);
    return value === undefined ? this.model.slotName(slot) : this.link(this.model.nodeOf(this.model.data.values.op[value]), this.model.slotName(slot));
  }

  list(pairs) {
    return make("dl", {}, pairs.filter(([, text]) => text !== "" && text !== null).map(([name, text]) => [make("dt", {}, name), make("dd", {}, text)]));
  }

  program() {
    const { model, run } = this;
    const found = [make("h2", {}, "The program"), make("p", { class: "faint" }, "Choose an op, a tensor or a group: in the tree, or in the graph.")];
    const titles = model.runs.map((one) => one.name);
    const names = Object.keys(run.quantities).filter((name) => model.runs.some((one) => one.quantities[name].value !== null));
    const rows = names.map((name) => {
      const texts = model.runs.map((one) => formatQuantity(one.quantities[name]));
      const differs = texts.some((text) => text !== texts[0]);
      return make("tr", { title: run.quantities[name].how }, make("td", {}, name.replace(/_/g, " ")), texts.map((text) => make("td", { class: `number ${differs ? "differs-text" : ""}` }, text)));
    });
    found.push(make("table", {}, make("thead", {}, make("tr", {}, make("th", {}, "on one device"), titles.map((name) => make("th", { class: "number" }, name)))), make("tbody", {}, rows)));
    const numbers = run.allTransfers();
    found.push(...this.kinds(numbers, "Transfers"), ...this.layers(numbers));
    if (run.data.notes.length) found.push(make("h3", {}, "Notes"), make("ul", {}, run.data.notes.map((note) => make("li", {}, note))));
    found.push(...proposalsOf(this, null));
    return found;
  }

  // Transfers summed by kind.
  kinds(numbers, title) {
    const { run } = this;
    const kinds = new Map();
    for (const number of numbers) {
      const totals = kinds.get(run.kindName(number)) || { count: 0, sent: 0, seconds: 0 };
      kinds.set(run.kindName(number), { count: totals.count + run.transfers.runs[number], sent: totals.sent + run.sent(number), seconds: totals.seconds + run.seconds(number) });
    }
    if (!kinds.size) return [];
    const timed = run.quantities.seconds.value !== null;
    return [make("h3", {}, title), make("table", {}, make("thead", {}, make("tr", {}, ["kind", "runs", "sent", timed ? "time" : null].filter(Boolean).map((name) => make("th", {}, name)))),
      make("tbody", {}, [...kinds].map(([kind, totals]) => make("tr", {}, make("td", {}, kind), make("td", {}, formatCount(totals.count)), make("td", {}, formatBytes(totals.sent)), timed ? make("td", {}, formatSeconds(totals.seconds)) : null))))];
  }

  // Transfers summed by layer, those that send most first.
  layers(numbers) {
    const { model, run } = this;
    const rows = run.byLayer(numbers);
    if (rows.length < 2) return [];
    const timed = run.quantities.seconds.value !== null;
    const most = 12;
    return [make("h3", {}, "Transfers by layer"), make("table", {}, make("thead", {}, make("tr", {}, ["layer", "sent", timed ? "time" : null].filter(Boolean).map((name) => make("th", { class: name === "layer" ? "" : "number" }, name)))),
      make("tbody", {}, rows.slice(0, most).map(({ layer, list, sent }) => make("tr", {}, make("td", {}, this.link(model.parent[model.nodeOf(run.placeOf(list[0]))], layer)), make("td", { class: "number" }, formatBytes(sent)), timed ? make("td", { class: "number" }, formatSeconds(list.reduce((sum, one) => sum + run.seconds(one), 0))) : null)))),
    rows.length > most ? make("p", { class: "faint" }, `and ${rows.length - most} more: in the tree, by transfers`) : null];
  }

  around(node) {
    const names = this.model.ancestors(node).reverse();
    return names.length ? make("p", { class: "faint" }, names.map((one, at) => [at ? " › " : "", this.link(one)]).flat()) : null;
  }

  group(node) {
    const { model, run } = this;
    const ops = model.opsIn(node);
    const numbers = ops.flatMap((op) => run.transfersAt.get(op) || []);
    const found = [make("h2", {}, model.label(node, this.state.words)), this.around(node),
      this.list([["kind", model.groupKind(node)], ["ops", String(ops.length)], ["sent by a device", formatBytes(run.sentBy(numbers))]]),
      make("button", { type: "button", onclick: () => this.state.toggle(node) }, this.state.expanded.has(node) ? "Fold" : "Unfold")];
    found.push(...this.kinds(numbers, "Transfers"));
    const largest = [...numbers].sort((a, b) => run.sent(b) - run.sent(a)).slice(0, 8).filter((number) => run.sent(number));
    if (largest.length) found.push(make("h3", {}, "Largest"), make("ol", {}, largest.map((number) => make("li", {}, `${formatBytes(run.sent(number))} at `, this.link(model.nodeOf(run.placeOf(number)), model.title(run.placeOf(number), this.state.words))))));
    return found;
  }

  op(op, node) {
    const { model, run, state } = this;
    const { ops } = model.data;
    const callee = ops.callee[op] < 0 ? undefined : model.functions.get(model.text(ops.callee[op]));
    const seconds = run.data.seconds ? run.data.seconds[op] : null;
    const found = [make("h2", {}, ops.kind[op] ? `${model.opName(op)} ${model.valueName(ops.outputs[op][0])}` : model.mlirName(op)),
      ops.kind[op] ? null : make("div", { class: "title" }, make("b", {}, model.label(op, "jax")), `  ${model.whereOf(op)}`), this.around(node),
      this.list([["JAX", model.scope(op)], ["source", model.location(op)], ["calls", callee === undefined ? "" : this.link(callee)],
        ["rule", ops.rule[op] < 0 ? "" : make("code", {}, model.text(ops.rule[op]))], ["operations", run.data.flops[op] ? `${formatCount(run.data.flops[op])}FLOP on a device` : ""], ["time", seconds ? formatSeconds(seconds) : ""]])];
    if (model.childrenOf(node).length) found.push(make("button", { type: "button", onclick: () => state.toggle(node) }, state.expanded.has(node) ? "Fold" : "Unfold"));
    for (const value of ops.outputs[op]) found.push(...this.value(value));
    if (ops.inputs[op].length) {
      found.push(make("h3", {}, "Uses"), make("ul", {}, ops.inputs[op].map((value) => make("li", {}, this.valueLink(value), ` ${this.madeBy(value)} ${this.shardingText(value, state.run)}`))));
    }
    const users = [...new Set(ops.outputs[op].flatMap((value) => model.users[value]))];
    if (users.length) {
      const links = users.slice(0, 8).map((user) => make("li", {}, this.link(model.nodeOf(user), model.title(user, state.words))));
      found.push(make("h3", {}, "Used by"), make("ul", {}, links, users.length > 8 ? make("li", { class: "faint" }, `and ${users.length - 8} more`) : null));
    }
    found.push(...this.transfers(run.transfersAt.get(op) || [], op));
    found.push(...proposalsOf(this, op));
    return found;
  }

  shardingText(value, run) {
    const number = this.model.runs[run].replay.sharding(value, this.state.time);
    return number < 0 ? "no sharding" : `[${this.model.data.shardings[number].dimTexts.join(", ")}]`;
  }

  value(value) {
    const { model, state, run } = this;
    const type = model.typeOf(value);
    const number = run.replay.sharding(value, state.time);
    const found = [make("h3", {}, model.valueName(value)), this.list([
      ["type", type.text],
      ...model.runs.map((one, at) => [model.runs.length > 1 ? `sharding, ${one.name}` : "sharding", make("span", { class: model.runs.length > 1 && !model.sameSharding(one.shardings[value], model.runs[0].shardings[value]) ? "differs-text" : "" }, this.shardingText(value, at))]),
      ["bytes", type.bytes ? `${formatBytes(type.bytes)} in all, ${formatBytes(run.local[value])} on a device` : ""],
      ["shard", this.shardText(type, number)],
    ])];
    if (number >= 0 && model.data.shardings[number].dims.length && model.data.shardings[number].mesh >= 0) found.push(deviceBox(model, number, type.shape));
    const slot = model.data.values.slot[value];
    if (slot >= 0) found.push(...whyOf(this, slot, number, type));
    return found;
  }

  shardText(type, number) {
    if (!type.shape || number < 0) return "";
    const { dims } = this.model.data.shardings[number];
    return type.shape.map((size, dim) => Math.ceil(size / (dims[dim] || []).reduce((product, axis) => product * axis[2], 1))).join(" x ");
  }

  transfers(numbers, op) {
    const { run, model } = this;
    if (!numbers.length) return [];
    const { transfers } = run;
    return [make("h3", {}, "Transfers here"), ...numbers.map((number) => this.list([
      ["kind", run.kindName(number)],
      ["number", transfers.number[number] < 0 ? "" : `${transfers.number[number]}, for shardy explain --reshard`],
      ["tensor", transfers.value[number] < 0 ? "" : this.valueLink(transfers.value[number])],
      ["axes", model.text(transfers.axes[number])], ["devices", `${transfers.devices[number]} in a group`], ["runs", formatCount(transfers.runs[number])],
      ["sent by a device", `${formatBytes(transfers.bytes[number])} each time, ${formatBytes(run.sent(number))} in all`],
      ["time", transfers.seconds[number] === null ? "" : formatSeconds(run.seconds(number))],
      ["for", model.text(transfers.where[number])], ["counted", model.text(transfers.how[number])],
    ]))];
  }
}
