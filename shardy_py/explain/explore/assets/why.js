// Reasons for a sharding: chains back to annotations, refusals, and proposals.

function axisText([name, before, size], sharding, mesh) {
  const axis = mesh && mesh.axes.find(([one]) => one === name);
  return axis && axis[1] !== size ? `"${name}":(${before})${size}` : `"${name}"`;
}

// Returns what is to say about the dimensions of a tensor.
function whyOf(details, slot, number, type) {
  const { model, run } = details;
  const found = [];
  const sharding = number < 0 ? null : model.data.shardings[number];
  const rank = sharding ? sharding.dims.length : type.shape ? type.shape.length : 0;
  const mesh = sharding ? model.data.meshes[sharding.mesh] : null;
  for (let dim = 0; dim < rank; dim += 1) {
    const axes = sharding ? sharding.dims[dim] : [];
    for (const axis of axes) found.push(chainOf(details, slot, dim, axis, axisText(axis, sharding, mesh)));
  }
  const refusals = run.replay.refusalsAt.get(slot) || [];
  const lost = lostOf(run, slot, rank);
  if (refusals.length || lost.length) {
    found.push(make("h3", {}, "Refused, and why"), make("ul", { class: "refusals" },
      refusals.slice(0, 12).map((one) => refusalItem(details, one)), lost.map((text) => make("li", {}, text))));
    if (refusals.length > 12) found.push(make("p", { class: "faint" }, `${refusals.length - 12} more`));
  }
  return found;
}

// Axes that a tensor had while shardings propagated, and has not got in the finished program.
function lostOf(run, slot, rank) {
  const value = run.model.valueOfSlot.get(slot);
  const final = value === undefined ? -1 : run.shardings[value];
  run.replay.seek(run.replay.length);
  const found = run.replay.current[slot];
  if (final < 0 || found < 0) return [];
  const texts = [];
  for (let dim = 0; dim < rank; dim += 1) {
    const kept = run.model.data.shardings[final].dims[dim] || [];
    for (const axis of run.model.data.shardings[found].dims[dim] || []) {
      if (!kept.some((one) => overlaps(one, axis))) texts.push(`dim ${dim}: "${axis[0]}" propagated here and was taken away afterwards: the program computes or hands over the tensor without it`);
    }
  }
  return texts;
}

function chainOf(details, slot, dim, axis, text) {
  const { model, run, state } = details;
  const { replay } = run;
  const { moves } = replay.data;
  const chain = replay.chain(slot, dim, axis);
  const nodes = new Set();
  const mark = (at) => {
    const value = model.valueOfSlot.get(at);
    if (value !== undefined) nodes.add(model.nodeOf(model.data.values.op[value]));
  };
  mark(slot);
  chain.moves.forEach((move) => {
    mark(moves.source[move]);
    const op = replay.data.updates.op[moves.update[move]];
    if (op >= 0) nodes.add(model.nodeOf(op));
  });
  mark(chain.slot);
  const steps = chain.moves.map((move) => make("li", {}, details.slotLink(moves.source[move]), ` dim ${moves.sourceDim[move]}, ${model.text(moves.direction[move])} through ${model.text(replay.data.updates.label[moves.update[move]])}`,
    make("span", { class: "faint" }, `; ${moves.factor[move] && model.text(moves.factor[move]) ? `factor ${model.text(moves.factor[move])}, ` : ""}update ${moves.update[move] + 1}, ${replay.level(moves.update[move])}`)));
  const { annotations } = replay.data;
  const origin = chain.annotation < 0 ? "nothing that is annotated" : model.text(annotations.text[chain.annotation]);
  const shown = chain.annotation < 0 || annotations.sharding[chain.annotation] < 0 ? "" : ` [${model.data.shardings[annotations.sharding[chain.annotation]].dimTexts.join(", ")}]`;
  return make("details", { class: "chain", "data-axis": axis[0] },
    make("summary", {}, `dim ${dim}: ${text} comes from ${origin}`),
    make("button", { type: "button", onclick: () => { state.set({ lit: nodes }); announce(`${nodes.size} nodes are highlighted`); } }, "Highlight in the graph"),
    make("ol", {}, steps, make("li", {}, details.slotLink(chain.slot), ` dim ${chain.dim}: annotated${shown}`)));
}

function refusalItem(details, number) {
  const { model, run } = details;
  const { refusals } = run.replay.data;
  const reason = model.text(refusals.reason[number]);
  const axis = run.replay.axis(refusals.axis[number])[0];
  const end = (name) => (refusals[name][number] < 0 ? null : [details.slotLink(refusals[name][number]), ` dim ${refusals[`${name}Dim`][number]}`]);
  const from = end("source");
  const obstacle = end("obstacle");
  const by = refusals.by[number].map((one) => `"${run.replay.axis(one)[0]}"`).join(", ");
  return make("li", {}, make("b", {}, `dim ${refusals.dim[number]}: "${axis}" `), from ? ["of ", ...from] : "", ` refused at ${model.text(refusals.label[number]) || "the tensor itself"}: ${model.data.reasons[reason] || reason}`,
    obstacle ? [" (", ...obstacle, by ? ` has ${by})` : ")"] : "");
}

function priceText({ before, after }) {
  const parts = [`sent ${formatBytes(before.sent)} → ${formatBytes(after.sent)}`, `peak ${formatBytes(before.peak)} → ${formatBytes(after.peak)}`];
  if (after.seconds !== null) parts.push(`time ${formatSeconds(before.seconds)} → ${formatSeconds(after.seconds)}`);
  return parts.join(", ");
}

// Returns the proposals for an op, or for the whole program.
function proposalsOf(details, op) {
  const { model, run, state } = details;
  const all = model.data.proposals || [];
  const numbers = op === null ? null : new Set((run.transfersAt.get(op) || []).map((one) => run.transfers.number[one]));
  const own = state.run ? [] : all.filter((one) => numbers === null || numbers.has(one.number));
  const best = own.filter((one) => one.useful).slice(0, 6);
  if (!best.length) return own.length ? [make("h3", {}, "Proposals"), make("p", { class: "faint" }, `${own.length} tried; none sends less`)] : [];
  return [make("h3", {}, "Proposals"), make("ul", { class: "proposals" }, best.map((one) => make("li", {}, one.text,
    make("div", { class: "faint" }, priceText(one)), one.line ? make("pre", {}, `${one.line}${one.place ? `  # at ${one.place}` : ""}`) : null)))];
}

customElements.define("shardy-details", Details);
