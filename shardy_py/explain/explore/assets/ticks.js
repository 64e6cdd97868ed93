// Ticks of axes: round numbers, few enough to be read.

// Returns round numbers between two ends: powers of two for bytes, else 1, 2 and 5 times powers of ten.
function roundTicks(low, high, most, isBinary = false) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const wanted = span / Math.max(1, most);
  const step = isBinary ? 2 ** Math.ceil(Math.log2(wanted)) : decimalStep(wanted);
  const ticks = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high * (1 + 1e-9); at += 1) ticks.push(at * step);
  return ticks;
}

function decimalStep(wanted) {
  const power = 10 ** Math.floor(Math.log10(wanted));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= wanted * (1 - 1e-9));
}

// Seconds at ticks, all in the unit of the largest.
function secondsAtTicks(ticks) {
  const most = Math.max(...ticks.map(Math.abs));
  const [scale, unit] = [[1, "s"], [1e3, "ms"], [1e6, "µs"], [1e9, "ns"]].find(([factor]) => most * factor >= 1) || [1e9, "ns"];
  return ticks.map((value) => `${Number((value * scale).toPrecision(6))} ${unit}`);
}

// An axis at the left of a drawing: a line per tick with its number.
function axisBeside(ticks, texts, y, left, right) {
  return ticks.flatMap((tick, at) => [draw("line", { class: "tick", x1: left, x2: right, y1: y(tick), y2: y(tick) }),
    draw("text", { class: "small", x: left - 4, y: y(tick) + 3, "text-anchor": "end" }, texts[at])]);
}

// An axis below a drawing: a line per tick with its number.
function axisBelow(ticks, texts, x, top, bottom) {
  return ticks.flatMap((tick, at) => [draw("line", { class: "tick", x1: x(tick), x2: x(tick), y1: top, y2: bottom }),
    draw("text", { class: "small", x: x(tick), y: bottom + 11, "text-anchor": "middle" }, texts[at])]);
}
