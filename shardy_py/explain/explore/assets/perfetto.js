// The times as a trace in the format of Chrome, which Perfetto opens.

const TRACKS = { layers: 1, computing: 2, communicating: 3 };

function traceOf(state, pieces, spans) {
  const { model } = state;
  const run = model.runs[state.run];
  const micro = (seconds) => seconds * 1e6;
  const event = (track, name, { start, end }, args) => ({ ph: "X", pid: 1, tid: TRACKS[track], name, ts: micro(start), dur: micro(end - start), args });
  const events = [{ ph: "M", pid: 1, name: "process_name", args: { name: `one device of ${model.data.machine}` } },
    ...Object.entries(TRACKS).map(([name, tid]) => ({ ph: "M", pid: 1, tid, name: "thread_name", args: { name } }))];
  for (const piece of pieces) {
    const args = { where: model.whereOf(piece.op), line: model.location(piece.op), op: model.mlirName(piece.op) };
    if (piece.transfer < 0) events.push(event("computing", model.title(piece.op, "jax"), piece, args));
    else events.push(event("communicating", run.kindName(piece.transfer), piece, { ...args, axes: model.text(run.transfers.axes[piece.transfer]), bytes: run.sent(piece.transfer) }));
  }
  for (const span of spans) events.push(event("layers", model.groupName(span.node), span, {}));
  const starts = new Map(pieces.map(({ op, start }) => [op, start]));
  run.data.memory.op.forEach((op, at) => {
    if (starts.has(op)) events.push({ ph: "C", pid: 1, name: "memory", ts: micro(starts.get(op)), args: { bytes: run.data.memory.bytes[at] } });
  });
  return { displayTimeUnit: "ms", traceEvents: events };
}

// Saves what happens one after the other, with the spans of the layers around it.
function saveTrace(state, pieces, spans) {
  const url = URL.createObjectURL(new Blob([JSON.stringify(traceOf(state, pieces, spans))], { type: "application/json" }));
  make("a", { href: url, download: `${state.model.data.title}.trace.json` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
