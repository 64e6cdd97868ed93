// Propagation again: the shardings after any number of updates, and the way of an axis back to its annotation.

class Replay {
  constructor(model, data, run) {
    this.model = model;
    this.data = data;
    this.run = run;
    this.length = data.updates.op.length;
    this.current = Int32Array.from(data.start);
    this.time = 0;
    this.undone = [];
    this.movesTo = new Map();
    data.moves.slot.forEach((slot, move) => push(this.movesTo, slot, move));
    this.refusalsAt = new Map();
    data.refusals.slot.forEach((slot, number) => push(this.refusalsAt, slot, number));
    this.annotationOf = new Map(data.annotations.slot.map((slot, number) => [slot, number]));
  }

  // Brings the current shardings to a time: the number of updates that happened.
  seek(time) {
    while (this.time < time) {
      const changes = this.data.updates.changes[this.time];
      const old = [];
      for (let at = 0; at < changes.length; at += 2) {
        old.push(changes[at], this.current[changes[at]]);
        this.current[changes[at]] = changes[at + 1];
      }
      this.undone[this.time] = old;
      this.time += 1;
    }
    while (this.time > time) {
      this.time -= 1;
      const old = this.undone[this.time];
      for (let at = old.length - 2; at >= 0; at -= 2) this.current[old[at]] = old[at + 1];
    }
  }

  // The sharding of a value at a time; null is the end, when the program is finished.
  sharding(value, time) {
    if (time === null || time >= this.length) return this.run.shardings[value];
    this.seek(time);
    const slot = this.model.data.values.slot[value];
    return slot < 0 ? -1 : this.current[slot];
  }

  changedOps(time) {
    const found = new Set();
    if (time === null || time < 1 || time > this.length) return found;
    const changes = this.data.updates.changes[time - 1];
    for (let at = 0; at < changes.length; at += 2) {
      const value = this.model.valueOfSlot.get(changes[at]);
      if (value !== undefined) found.add(this.model.data.values.op[value]);
    }
    return found;
  }

  axis(number) {
    const [name, before, size] = this.model.text(number).split("\t");
    return [name, Number(before), Number(size)];
  }

  level(update) {
    const { level, priority, strategy } = this.data.updates;
    const name = this.data.levels[level[update]];
    return `user priority ${priority[update]}, level ${level[update]}${name ? ` (${name})` : ""}, ${this.model.text(strategy[update])}`;
  }

  describe(time) {
    if (!this.length) return "nothing propagates";
    if (time === null || time >= this.length) return `all ${this.length} updates, and the shardings of the finished program`;
    if (time === 0) return "before any update: annotations only";
    const update = time - 1;
    const changes = this.data.updates.changes[update];
    const parts = [];
    for (let at = 0; at < changes.length && parts.length < 3; at += 2) {
      const sharding = this.model.data.shardings[changes[at + 1]];
      parts.push(`${this.model.slotName(changes[at])} [${sharding ? sharding.dimTexts.join(", ") : ""}]`);
    }
    return `update ${time} of ${this.length}: ${this.model.text(this.data.updates.label[update])} gives ${parts.join(", ")}; ${this.level(update)}`;
  }

  // The moves that brought an axis to a dimension, the last first, and the annotation where they start.
  chain(slot, dim, axis) {
    const { moves } = this.data;
    const found = [];
    let wanted = axis;
    let before = Infinity;
    let within = Infinity;
    for (;;) {
      const move = this.lastMove(slot, dim, wanted, before, within);
      if (move < 0) break;
      found.push(move);
      wanted = this.axis(moves.axis[move]);
      before = moves.update[move];
      within = this.model.text(moves.direction[move]) === "group" ? move : -1;
      slot = moves.source[move];
      dim = moves.sourceDim[move];
    }
    return { moves: found, slot, dim, annotation: this.annotationOf.get(slot) ?? -1 };
  }

  lastMove(slot, dim, axis, before, within) {
    const { moves } = this.data;
    const list = this.movesTo.get(slot) || [];
    for (let at = list.length - 1; at >= 0; at -= 1) {
      const move = list[at];
      const inTime = moves.update[move] < before || (moves.update[move] === before && move < within);
      if (inTime && moves.dim[move] === dim && overlaps(this.axis(moves.axis[move]), axis)) return move;
    }
    return -1;
  }
}

// Whether two axes, each with the size of the parts before it and its own, share something.
function overlaps([name, before, size], [other, otherBefore, otherSize]) {
  return name === other && before < otherBefore * otherSize && otherBefore < before * size;
}
