// Texts for numbers, and elements from texts.

const SVG = "http://www.w3.org/2000/svg";

function formatBytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (value >= 1024 && at < units.length - 1) { value /= 1024; at += 1; }
  return `${at && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}

function formatSeconds(value) {
  if (value === null || value === undefined) return "unknown";
  for (const [scale, unit] of [[1, "s"], [1e3, "ms"], [1e6, "us"]]) {
    if (value * scale >= 1) return `${(value * scale).toPrecision(3)} ${unit}`;
  }
  return value ? `${(value * 1e9).toPrecision(3)} ns` : "0 s";
}

function formatCount(value) {
  for (const [scale, unit] of [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (value >= scale) return `${(value / scale).toPrecision(3)} ${unit}`;
  }
  return String(Math.round(value * 100) / 100);
}

function plural(count, noun, text = formatCount(count)) {
  return `${text} ${noun}${count === 1 ? "" : "s"}`;
}

function formatQuantity({ value, unit }) {
  if (value === null) return "unknown";
  if (unit === "B") return formatBytes(value);
  if (unit === "s") return formatSeconds(value);
  return unit ? `${formatCount(value)}${unit}` : String(Math.round(value * 1000) / 1000);
}

// Returns an element with attributes and children; null children are left out.
function make(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function draw(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

function shorten(text, most) {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

function choice(label, options, value, change) {
  const select = make("select", { "aria-label": label, onchange: () => change(select.value) },
    options.map(([key, text]) => make("option", { value: key, selected: key === value }, text)));
  return make("label", {}, `${label} `, select);
}
