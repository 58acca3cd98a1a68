// Draws who had which job. The picture is a canvas; the table below it has the same in words.
const prefix = document.documentElement.dataset.prefix ?? "";
const canvas = document.querySelector("canvas[data-lanes]");
const said = document.getElementById("said");
const form = document.getElementById("window");
const context = canvas.getContext("2d");
const lineHeight = 11, rowGap = 7, axisHeight = 26, hostHeight = 22, pauseHeight = 18, depthHeight = 0;
let data = null, view = null, rows = [], height = 0, labels = 170, colors = {}, order = [], current = -1;
let asked = 0, wanted = null, drag = null;

const source = new URL(canvas.dataset.lanes, location.origin);

function paint() {
  colors = {};
  for (const item of document.querySelectorAll(".legend li")) {
    colors[item.className] = getComputedStyle(item, "::before").color;
  }
  const style = getComputedStyle(document.body);
  colors.text = style.color;
  colors.paper = style.backgroundColor;
  colors.quiet = getComputedStyle(document.querySelector(".window")).color;
  colors.line = getComputedStyle(document.querySelector("header")).borderBottomColor;
}

// lay computes where rows are. A worker without anything in view is folded away.
function lay() {
  const hosts = new Map();
  data.lanes.forEach((lane, i) => {
    if (!hosts.has(lane.host)) hosts.set(lane.host, []);
    hosts.get(lane.host).push(i);
  });
  rows = [];
  let y = axisHeight + data.pauses.length * pauseHeight;
  for (const [host, lanes] of hosts) {
    rows.push({host: host || "no host", y: y + hostHeight / 2});
    y += hostHeight;
    for (const i of lanes) {
      const h = data.lanes[i].slots * lineHeight + rowGap;
      rows.push({lane: i, y, h});
      data.lanes[i].y = y;
      y += h;
    }
  }
  height = Math.max(y + 6, 90);
  order = data.row.map((_, i) => i).sort((a, b) => data.row[a] - data.row[b] || data.start[a] - data.start[b]);
}

function size() {
  const scale = devicePixelRatio || 1;
  const width = Math.max(canvas.parentElement.clientWidth, 200);
  labels = width < 640 ? 92 : 170;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return width;
}

const begin = () => Date.parse(data.from);
const x = (ms, width) => labels + (begin() + ms - view.from) / (view.to - view.from) * (width - labels);

function clock(time, seconds) {
  return new Date(time).toLocaleTimeString(undefined,
    {hour: "2-digit", minute: "2-digit", second: seconds ? "2-digit" : undefined, hourCycle: "h23"});
}

function step(span, width) {
  const steps = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10800, 21600, 43200, 86400, 604800].map((s) => s * 1000);
  return steps.find((s) => span / s <= (width - labels) / 90) ?? 2592000000;
}

function fit(text, width) {
  if (context.measureText(text).width <= width) return text;
  while (text.length > 1 && context.measureText(text + "…").width > width) text = text.slice(0, -1);
  return text + "…";
}

// draw draws everything, and says on the canvas what was drawn.
function draw() {
  const width = size();
  const drawn = {bars: 0, succeeded: 0, failed: 0, reclaimed: 0, refused: 0, silent: 0, pauses: 0, arrows: 0, rows: 0};
  const font = getComputedStyle(document.body).fontFamily;
  const c = context;
  c.clearRect(0, 0, width, height);
  c.font = "11px " + font;
  c.textBaseline = "middle";
  // The axis.
  const tick = step(view.to - view.from, width);
  const offset = new Date(view.from).getTimezoneOffset() * 60000;
  c.strokeStyle = colors.line;
  c.fillStyle = colors.quiet;
  c.lineWidth = 1;
  for (let t = Math.ceil((view.from - offset) / tick) * tick + offset; t <= view.to; t += tick) {
    const at = Math.round(x(t - begin(), width)) + .5;
    c.beginPath();
    c.moveTo(at, axisHeight - 4);
    c.lineTo(at, height);
    c.stroke();
    const text = tick >= 86400000 ? new Date(t).toLocaleDateString() : clock(t, tick < 60000);
    const half = c.measureText(text).width / 2;
    if (at - half > labels - 20 && at + half < width) c.fillText(text, at - half, 11);
  }
  c.save();
  c.beginPath();
  c.rect(labels, axisHeight - 4, width - labels, height);
  c.clip();
  // Pauses: a band of its own, and a shade over everything.
  data.pauses.forEach((p, i) => {
    const from = x(p.from, width), to = x(p.to, width), top = axisHeight + i * pauseHeight;
    c.globalAlpha = .07;
    c.fillStyle = colors.paused;
    c.fillRect(from, top, to - from, height - top);
    c.globalAlpha = .25;
    c.fillRect(from, top + 2, to - from, pauseHeight - 4);
    c.globalAlpha = 1;
    c.fillStyle = colors.text;
    c.fillText(fit(`paused by ${p.by.replace(/^\w+:/, "")}: ${p.reason || "no reason"}`, Math.max(to - from, 220)),
      Math.max(from, labels) + 5, top + pauseHeight / 2);
    drawn.pauses++;
  });
  // What is behind the bars: silence, new processes, new versions.
  for (const row of rows) {
    if (row.lane === undefined) continue;
    const lane = data.lanes[row.lane];
    for (const [from, to] of lane.silent) {
      const a = x(from, width), b = x(to, width);
      c.save();
      c.beginPath();
      c.rect(a, row.y, b - a, row.h - rowGap + 1);
      c.clip();
      c.strokeStyle = colors.silent;
      c.globalAlpha = .45;
      c.beginPath();
      for (let s = Math.max(a, labels) - row.h; s < Math.min(b, width); s += 7) {
        c.moveTo(s, row.y + row.h);
        c.lineTo(s + row.h, row.y);
      }
      c.stroke();
      c.restore();
      drawn.silent++;
    }
    c.strokeStyle = colors.quiet;
    for (const at of lane.starts) {
      const s = Math.round(x(at, width)) + .5;
      c.beginPath();
      c.moveTo(s, row.y - 2);
      c.lineTo(s, row.y + row.h - rowGap + 2);
      c.stroke();
    }
    c.fillStyle = colors.quiet;
    for (const at of lane.versions) c.fillText(lane.version, x(at, width) + 3, row.y + 5);
  }
  // The bars.
  const signs = new Map(data.sign);
  for (let i = 0; i < data.row.length; i++) {
    let a = x(data.start[i], width), b = x(data.end[i], width);
    if (b < labels || a > width) continue;
    const top = data.lanes[data.row[i]].y + data.slot[i] * lineHeight;
    const how = data.outcomes[data.how[i]], h = lineHeight - 2;
    const w = Math.max(b - a, 1.5);
    drawn.bars++;
    drawn[how] = (drawn[how] ?? 0) + data.count[i];
    c.fillStyle = colors[how] ?? colors.text;
    c.strokeStyle = c.fillStyle;
    switch (how) {
      case "failed": // a notch at its end
        c.fillRect(a, top, Math.max(w - 2, 1.5), h);
        if (w > 4) c.fillRect(a + w - 2, top + h / 2 - 1, 2, 3);
        break;
      case "released": // no end
        c.globalAlpha = .55;
        c.fillRect(a, top, w, h);
        c.globalAlpha = 1;
        break;
      case "reclaimed": {
        const sign = Math.max(x(signs.get(i) ?? data.start[i], width), a);
        c.fillRect(a, top, Math.max(sign - a, 2), h);
        c.strokeRect(sign + .5, top + .5, Math.max(b - sign - 1, 1), h - 1);
        c.lineWidth = 1.6;
        c.beginPath();
        c.moveTo(b - 3, top); c.lineTo(b + 3, top + h);
        c.moveTo(b + 3, top); c.lineTo(b - 3, top + h);
        c.stroke();
        c.lineWidth = 1;
        break;
      }
      case "open": { // a soft end
        const soft = c.createLinearGradient(Math.max(b - 18, a), 0, b, 0);
        soft.addColorStop(0, colors.open);
        soft.addColorStop(1, colors.paper);
        c.fillStyle = soft;
        c.fillRect(a, top, w, h);
        break;
      }
      default:
        c.fillRect(a, top, w, h);
    }
  }
  // Jobs that went to another worker, and writes that came too late.
  c.strokeStyle = colors.reclaimed;
  c.globalAlpha = .8;
  for (const [from, to] of data.gone) {
    const a = x(data.end[from], width), b = x(data.start[to], width);
    if (b < labels || a > width) continue;
    c.beginPath();
    c.moveTo(a, middle(from));
    c.bezierCurveTo(a + 14, middle(from), b - 14, middle(to), b, middle(to));
    c.stroke();
    drawn.arrows++;
  }
  c.globalAlpha = 1;
  for (const m of data.marks) {
    const at = x(m.at, width), y = data.lanes[m.row].y + (m.bar < 0 ? 4 : data.slot[m.bar] * lineHeight + 4);
    if (at < labels || at > width) continue;
    c.strokeStyle = colors.refused;
    if (m.bar >= 0) {
      c.setLineDash([2, 3]);
      c.beginPath();
      c.moveTo(Math.max(x(data.end[m.bar], width), labels), y);
      c.lineTo(at, y);
      c.stroke();
      c.setLineDash([]);
    }
    c.lineWidth = 3;
    c.beginPath();
    c.moveTo(at - 5, y - 5); c.lineTo(at + 5, y + 5);
    c.moveTo(at + 5, y - 5); c.lineTo(at - 5, y + 5);
    c.stroke();
    c.lineWidth = 1;
    drawn.refused++;
  }
  if (current >= 0) {
    const a = x(data.start[current], width), b = x(data.end[current], width);
    c.strokeStyle = colors.text;
    c.lineWidth = 2;
    c.strokeRect(a - 2, data.lanes[data.row[current]].y + data.slot[current] * lineHeight - 2,
      Math.max(b - a, 2) + 4, lineHeight + 2);
    c.lineWidth = 1;
  }
  c.restore();
  // Names.
  data.pauses.forEach((p, i) => {
    c.fillStyle = colors.quiet;
    c.fillText(fit("queue " + p.queue, labels - 12), 2, axisHeight + i * pauseHeight + pauseHeight / 2);
  });
  for (const row of rows) {
    if (row.lane === undefined) {
      c.font = "600 11px " + font;
      c.fillStyle = colors.text;
      c.fillText(fit("host " + row.host, labels - 10), 2, row.y + 3);
      c.font = "11px " + font;
      continue;
    }
    c.fillStyle = colors.text;
    c.fillText(fit(data.lanes[row.lane].worker, labels - 22), 12, row.y + (row.h - rowGap) / 2);
    drawn.rows++;
  }
  canvas.dataset.drawn = JSON.stringify(drawn);
}

const middle = (bar) => data.lanes[data.row[bar]].y + data.slot[bar] * lineHeight + 4.5;

function describe(i) {
  const how = data.outcomes[data.how[i]];
  const lane = data.lanes[data.row[i]];
  const from = clock(begin() + data.start[i], true), to = clock(begin() + data.end[i], true);
  said.replaceChildren();
  if (data.count[i] > 1) {
    said.append(`${lane.worker}: ${data.count[i]} short claims from ${from} to ${to}, ${how}. Zoom in to see each.`);
    return;
  }
  const text = how === "open" ? `since ${from}, has not ended` : `${from} to ${to}, ${how}`;
  said.append(`${lane.worker}: ${text}. `);
  const link = document.createElement("a");
  link.href = prefix + "/events/" + data.event[i];
  link.append("Open the job");
  said.append(link);
}

function choose(i, focus) {
  current = i;
  describe(i);
  if (focus && (begin() + data.end[i] < view.from || begin() + data.start[i] > view.to)) {
    const half = (view.to - view.from) / 2, at = begin() + data.start[i];
    look(at - half, at + half);
  }
  draw();
}

// look shows another window: at once what is there, and soon the rest.
function look(from, to) {
  const now = Date.now();
  let span = Math.max(to - from, 1000);
  if (from + span > now) from = now - span;
  view = {from, to: from + span};
  draw();
  clearTimeout(wanted);
  wanted = setTimeout(load, 250);
}

async function load() {
  const width = Math.max(canvas.parentElement.clientWidth, 200);
  if (view) {
    source.searchParams.set("from", new Date(view.from).toISOString());
    source.searchParams.set("to", new Date(view.to).toISOString());
  }
  source.searchParams.set("px", String(Math.min(Math.round(width), 8192)));
  const mine = ++asked;
  const answer = await fetch(source, {headers: {Accept: "application/json"}});
  if (mine !== asked) return;
  if (!answer.ok) {
    said.textContent = "The lanes cannot be read: " + ((await answer.json()).detail ?? answer.status);
    canvas.hidden = false;
    return;
  }
  data = await answer.json();
  if (view) {
    const address = new URL(location.href);
    for (const name of ["from", "to"]) {
      address.searchParams.set(name, source.searchParams.get(name));
      form.elements[name].value = source.searchParams.get(name);
    }
    history.replaceState(null, "", address);
  }
  view = {from: Date.parse(data.from), to: Date.parse(data.to)};
  current = -1;
  canvas.hidden = false;
  paint();
  lay();
  draw();
}

function barAt(event) {
  const box = canvas.getBoundingClientRect(), width = box.width;
  const px = event.clientX - box.left, py = event.clientY - box.top;
  let best = -1, distance = 8;
  for (let i = 0; i < data.row.length; i++) {
    const top = data.lanes[data.row[i]].y + data.slot[i] * lineHeight;
    if (py < top - 1 || py > top + lineHeight) continue;
    const a = x(data.start[i], width), b = x(data.end[i], width);
    const d = px < a ? a - px : px > b ? px - b : 0;
    if (d < distance) [best, distance] = [i, d];
  }
  return best;
}

function zoom(factor, around) {
  const span = (view.to - view.from) * factor;
  const at = around ?? (view.from + view.to) / 2;
  const share = (at - view.from) / (view.to - view.from);
  look(at - share * span, at - share * span + span);
}

function go(by, keep) {
  const at = order.indexOf(current);
  for (let i = at + by; i >= 0 && i < order.length; i += by) {
    if (keep(order[i])) return choose(order[i], true);
  }
}

canvas.addEventListener("keydown", (event) => {
  if (!data || event.ctrlKey || event.metaKey || event.altKey) return;
  const lane = current < 0 ? -1 : data.row[current];
  const lost = (i) => ["reclaimed", "failed"].includes(data.outcomes[data.how[i]]);
  const act = {
    ArrowRight: () => go(1, () => true), ArrowLeft: () => go(-1, () => true),
    ArrowDown: () => go(1, (i) => data.row[i] !== lane), ArrowUp: () => go(-1, (i) => data.row[i] !== lane),
    n: () => go(1, (i) => data.outcomes[data.how[i]] === "reclaimed") ?? undefined,
    f: () => go(1, lost),
    "+": () => zoom(.5), "=": () => zoom(.5), "-": () => zoom(2),
    0: () => { location.href = prefix + "/lanes"; },
    Enter: () => { if (current >= 0 && data.count[current] === 1) location.href = prefix + "/events/" + data.event[current]; },
    Escape: () => { current = -1; said.replaceChildren(); draw(); },
  }[event.key];
  if (!act) return;
  event.preventDefault();
  event.stopPropagation();
  act();
});
canvas.addEventListener("wheel", (event) => {
  if (!data || !event.ctrlKey) return;
  event.preventDefault();
  const box = canvas.getBoundingClientRect();
  const share = (event.clientX - box.left - labels) / (box.width - labels);
  zoom(event.deltaY < 0 ? .8 : 1.25, view.from + share * (view.to - view.from));
}, {passive: false});
canvas.addEventListener("pointerdown", (event) => {
  if (!data) return;
  drag = {x: event.clientX, from: view.from, to: view.to, moved: false};
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  if (!drag) return;
  const by = event.clientX - drag.x;
  if (Math.abs(by) > 4) drag.moved = true;
  if (!drag.moved) return;
  const ms = by / (canvas.clientWidth - labels) * (drag.to - drag.from);
  look(drag.from - ms, drag.to - ms);
});
canvas.addEventListener("pointerup", (event) => {
  const moved = drag?.moved;
  drag = null;
  if (moved || !data) return;
  const i = barAt(event);
  if (i >= 0) choose(i, false);
});
addEventListener("resize", () => { if (data) draw(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (data) { paint(); draw(); } });
load();
