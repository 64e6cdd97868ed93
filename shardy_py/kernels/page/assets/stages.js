"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const GRID = -1;
const columns = document.getElementById("columns");
let kept = null;

const hue = (op) => (op * 137) % 360;

function lineOf(text, op) {
  const line = document.createElement("div");
  line.textContent = text || " ";
  if (op !== null) {
    line.dataset.op = op;
    line.style.setProperty("--hue", op === GRID ? 0 : hue(op));
    line.style.setProperty("--sat", op === GRID ? "0%" : "70%");
  }
  return line;
}

function show(box, text) {
  const missing = document.createElement("div");
  missing.className = "missing";
  missing.textContent = text.missing;
  box.replaceChildren(...(text.missing ? [missing] : text.lines.map(([line, op]) => lineOf(line, op))));
  light(kept);
}

function column(name, heading) {
  const box = document.createElement("section");
  const bar = document.createElement("div");
  const text = document.createElement("div");
  box.className = `column ${name}`;
  box.setAttribute("aria-label", name);
  bar.className = "bar";
  text.className = "text";
  text.tabIndex = 0;
  bar.append(heading);
  box.append(bar, text);
  columns.append(box);
  return text;
}

function light(op) {
  for (const line of columns.querySelectorAll("[data-op]")) {
    line.classList.toggle("lit", op !== null && line.dataset.op === op);
  }
}

function keep(op, from) {
  kept = op;
  light(op);
  if (op === null) return;
  for (const text of columns.querySelectorAll(".text")) {
    const first = text.querySelector(`[data-op="${op}"]`);
    if (first && text !== from) text.scrollTop += first.getBoundingClientRect().top - text.getBoundingClientRect().top - 40;
  }
}

const opOf = (event) => event.target.closest("[data-op]")?.dataset.op ?? null;
columns.addEventListener("mouseover", (event) => light(opOf(event) ?? kept));
columns.addEventListener("click", (event) => {
  const op = opOf(event);
  if (op !== null) keep(op === kept ? null : op, event.target.closest(".text"));
});

const ops = column("ops", "ops of the fusion");
show(ops, { missing: "", lines: [...data.ops.map((text, op) => [`${op}  ${text}`, op]), ["the grid", GRID]] });
const choice = document.createElement("select");
choice.setAttribute("aria-label", "stage");
choice.append(...data.stages.map((stage, number) => new Option(stage.title, number)));
const stage = column("stage", choice);
choice.addEventListener("change", () => show(stage, data.stages[choice.value]));
choice.value = data.stages.length - 1;
show(stage, data.stages[choice.value]);
for (const machine of data.machines) show(column(machine.title, machine.title), machine);
document.body.dataset.ready = "";
