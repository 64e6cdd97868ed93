// Tensors as boxes, cut by the axes of their dimensions, with the numbers of the devices.

// Returns the dimensions that are drawn: the two that are cut most, in order.
function drawnDims(sharding) {
  const parts = sharding.dims.map((axes) => axes.reduce((product, axis) => product * axis[2], 1));
  const order = parts.map((_, dim) => dim).sort((a, b) => parts[b] - parts[a] || a - b).slice(0, 2);
  return { dims: order.sort((a, b) => a - b), parts };
}

// Returns the devices of each cell of a drawing.
function cellsOf(model, sharding) {
  const mesh = model.data.meshes[sharding.mesh];
  const { dims, parts } = drawnDims(sharding);
  const rows = dims.length > 1 ? parts[dims[0]] : 1;
  const columns = dims.length ? parts[dims[dims.length - 1]] : 1;
  const cells = Array.from({ length: rows * columns }, () => []);
  if (!mesh) return { cells, rows, columns, dims };
  const total = mesh.axes.reduce((product, [, size]) => product * size, 1);
  for (let place = 0; place < total; place += 1) {
    const at = coordinates(mesh, place);
    const row = dims.length > 1 ? partOf(sharding.dims[dims[0]], at, mesh) : 0;
    const column = dims.length ? partOf(sharding.dims[dims[dims.length - 1]], at, mesh) : 0;
    cells[row * columns + column].push(mesh.devices.length ? mesh.devices[place] : place);
  }
  return { cells, rows, columns, dims };
}

function coordinates(mesh, place) {
  const found = new Map();
  for (let axis = mesh.axes.length - 1; axis >= 0; axis -= 1) {
    const [name, size] = mesh.axes[axis];
    found.set(name, place % size);
    place = Math.floor(place / size);
  }
  return found;
}

function partOf(axes, at, mesh) {
  let part = 0;
  for (const [name, before, size] of axes) {
    const whole = mesh.axes.find(([axis]) => axis === name)[1];
    part = part * size + Math.floor(at.get(name) / (whole / (before * size))) % size;
  }
  return part;
}

const MOST_CELLS = 32;

// Returns a small box without numbers for a node of the graph.
function smallBox(model, sharding, width, height) {
  const { dims, parts } = drawnDims(sharding);
  const rows = Math.min(dims.length > 1 ? parts[dims[0]] : 1, 8);
  const columns = Math.min(dims.length ? parts[dims[dims.length - 1]] : 1, 8);
  let path = `M0 0H${width}V${height}H0Z`;
  for (let row = 1; row < rows; row += 1) path += `M0 ${(row * height) / rows}H${width}`;
  for (let column = 1; column < columns; column += 1) path += `M${(column * width) / columns} 0V${height}`;
  return draw("path", { d: path, fill: "none", stroke: "var(--text)", "stroke-width": 0.8, "aria-hidden": "true" });
}

// Returns a box with the numbers of the devices in each part, for the details of a tensor.
function deviceBox(model, number, shape) {
  const sharding = model.data.shardings[number];
  const { cells, rows, columns, dims } = cellsOf(model, sharding);
  const shownRows = Math.min(rows, MOST_CELLS);
  const shownColumns = Math.min(columns, MOST_CELLS);
  const width = Math.max(26, Math.min(72, 216 / shownColumns));
  const height = rows > 1 ? Math.max(14, Math.min(28, 140 / shownRows)) : 28;
  const svg = draw("svg", { class: "box", role: "img", width: shownColumns * width + 2, height: shownRows * height + 2,
    viewBox: `-1 -1 ${shownColumns * width + 2} ${shownRows * height + 2}`, "aria-label": boxText(cells, rows, columns, dims) });
  for (let row = 0; row < shownRows; row += 1) {
    for (let column = 0; column < shownColumns; column += 1) {
      const devices = cells[row * columns + column];
      svg.append(draw("rect", { x: column * width, y: row * height, width, height }),
        draw("text", { x: (column + 0.5) * width, y: (row + 0.5) * height + 3, "text-anchor": "middle" },
          shorten(devices.join(","), Math.floor(width / 5))));
    }
  }
  const hidden = rows > shownRows || columns > shownColumns;
  const names = dims.map((dim) => `dim ${dim}${shape ? ` (${shape[dim]})` : ""}`);
  const note = `${names.length > 1 ? `down ${names[0]}, across ${names[1]}` : names.length ? `across ${names[0]}` : "scalar"}${hidden ? `; ${rows} x ${columns} parts, the first are shown` : ""}`;
  return make("figure", { style: "margin: 4px 0" }, svg, make("figcaption", { class: "faint" }, note));
}

function boxText(cells, rows, columns, dims) {
  const parts = cells.slice(0, MOST_CELLS).map((devices, at) => `part ${Math.floor(at / columns)},${at % columns}: devices ${devices.slice(0, 8).join(" ")}${devices.length > 8 ? " and others" : ""}`);
  return `${rows} by ${columns} parts over dimensions ${dims.join(" and ")}: ${parts.join("; ")}`;
}
