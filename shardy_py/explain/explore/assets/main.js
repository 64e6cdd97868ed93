// Reads the data and starts the panels.

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const plain = atob(text);
  const bytes = new Uint8Array(plain.length);
  for (let at = 0; at < plain.length; at += 1) bytes[at] = plain.charCodeAt(at);
  return bytes;
}

async function readData() {
  const text = document.getElementById("data").textContent;
  const bytes = fromBase64(text);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function controls(state) {
  const { model } = state;
  const measures = [["memory", "bytes held"], ["sent", "bytes sent"]];
  if (model.runs[0].quantities.seconds.value !== null) measures.push(["time", "time"]);
  const parts = [choice("Names", [["jax", "of JAX"], ["mlir", "of MLIR"]], state.words, (words) => state.set({ words })),
    choice("Width", measures, state.measure, (measure) => state.set({ measure }))];
  if (model.runs.length > 1) {
    parts.push(choice("Order", model.runs.map((run, at) => [String(at), run.name]), "0", (run) => {
      state.set({ run: Number(run) });
      if (state.isDouble) showGraphs(state);
    }));
    const both = make("button", { type: "button", "aria-pressed": "false", onclick: () => beside(state, both) }, `Side by side (${model.differing.size} differ)`);
    parts.push(both);
  }
  document.getElementById("controls").replaceChildren(...parts);
}

// Shows the first order and the chosen one in two graphs with one view, or one again.
function beside(state, button) {
  const isDouble = !state.isDouble;
  button.setAttribute("aria-pressed", String(isDouble));
  state.set({ isDouble });
  showGraphs(state);
}

function showGraphs(state) {
  const host = document.getElementById("graphs");
  const graphs = (state.isDouble ? [0, state.run || 1] : [undefined]).map((run) => [document.createElement("shardy-graph"), run]);
  host.replaceChildren(...graphs.map(([graph]) => graph));
  graphs.forEach(([graph, run]) => graph.start(state, run));
  graphs[0][0].begin();
}

async function start() {
  const model = new Model(await readData());
  const state = new State(model);
  controls(state);
  for (const name of ["tree", "graph", "details", "replay", "memory", "time", "orders"]) {
    document.querySelector(`shardy-${name}`).start(state);
  }
  document.querySelector("shardy-graph").begin();
  requestAnimationFrame(() => { document.body.dataset.ready = "true"; });
}

start().catch((error) => {
  document.body.dataset.failed = String(error);
  document.getElementById("live").className = "";
  document.getElementById("live").textContent = `The page could not be shown: ${error}`;
  throw error;
});
