// Draws the lanes on their canvas.
import {Axis, clock, lasts, step} from "./lanes-axis.js";
import {colorOf, cross, hatch, shape, strokes as strokesOn} from "./lanes-shapes.js";

const canvas = document.querySelector("canvas[data-lanes]");
const c = canvas.getContext("2d");
export const lineHeight = 11;
const rowGap = 7, axisHeight = 26, hostHeight = 22, pauseHeight = 18, depthHeight = 46;
let colors = {}, rows = [], bottom = 0, font = "";

// readColors takes the colors from the page, which is light or dark.
export function readColors() {
  colors = {};
  for (const item of document.querySelectorAll(".legend li")) {
    colors[item.className] = colorOf(item.className);
  }
  const style = getComputedStyle(document.body);
  colors.text = style.color;
  colors.paper = style.backgroundColor;
  colors.quiet = getComputedStyle(document.querySelector(".window")).color;
  colors.line = getComputedStyle(document.querySelector("header")).borderBottomColor;
  font = style.fontFamily;
}

// lay computes where the rows of data are.
export function lay(data) {
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
  bottom = Math.max(y + 6, 64);
}

// top is where a bar is, from above.
export const top = (data, bar) => data.lanes[data.row[bar]].y + data.slot[bar] * lineHeight;
const middle = (data, bar) => top(data, bar) + 4.5;

const line = (...points) => strokesOn(c, ...points);

function fit(text, width) {
  if (c.measureText(text).width <= width) return text;
  while (text.length > 1 && c.measureText(text + "…").width > width) text = text.slice(0, -1);
  return text + "…";
}

// draw draws everything, says on the canvas what was drawn, and returns the axis. The view has from and to;
// stretches are those in which something runs, where idle time is cut short; depth may not be there yet.
export function draw({data, view, depth, stretches, current}) {
  const ratio = devicePixelRatio || 1, height = bottom + depthHeight;
  const right = Math.max(canvas.parentElement.clientWidth, 200), left = right < 640 ? 92 : 170;
  canvas.width = Math.round(right * ratio);
  canvas.height = Math.round(height * ratio);
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, right, height);
  c.font = "11px " + font;
  c.textBaseline = "middle";
  const axis = new Axis(view, left, right, stretches);
  const begin = Date.parse(data.from), x = (ms) => axis.x(begin + ms);
  const drawn = {bars: 0, succeeded: 0, failed: 0, reclaimed: 0, refused: 0, silent: 0, pauses: 0, arrows: 0, rows: 0,
    cuts: axis.cuts.length, depth: 0, shapes: {}, current};
  const at = {data, view, axis, x, left, right, drawn};
  ticks(at, height);
  c.save();
  c.beginPath();
  c.rect(left, axisHeight - 4, right - left, height);
  c.clip();
  pauses(at);
  behind(at);
  bars(at);
  gone(at);
  refused(at);
  if (current >= 0) {
    const from = x(data.start[current]), to = x(data.end[current]);
    c.strokeStyle = colors.text;
    c.lineWidth = 2;
    c.strokeRect(from - 2, top(data, current) - 2, Math.max(to - from, 2) + 4, lineHeight + 2);
    c.lineWidth = 1;
  }
  if (depth) waiting(at, depth);
  cuts(at, height);
  c.restore();
  names(at, depth);
  canvas.dataset.drawn = JSON.stringify(drawn);
  return axis;
}

function ticks({view, axis, left, right}, height) {
  const tick = step(axis.scale), offset = new Date(view.from).getTimezoneOffset() * 60000;
  c.strokeStyle = colors.line;
  c.fillStyle = colors.quiet;
  c.lineWidth = 1;
  let free = left - 20;
  for (let t = Math.ceil((view.from - offset) / tick) * tick + offset; t <= view.to; t += tick) {
    if (axis.isCut(t)) continue;
    const at = Math.round(axis.x(t)) + .5;
    line(at, axisHeight - 4, at, height);
    const text = tick >= 86400000 ? new Date(t).toLocaleDateString() : clock(t, tick < 60000);
    const half = c.measureText(text).width / 2;
    if (at - half < free || at + half > right) continue;
    c.fillText(text, at - half, 11);
    free = at + half + 6;
  }
}

// cuts shows where idle time is cut short, and how long it was.
function cuts({axis}, height) {
  for (const [from, to] of axis.cuts) {
    const a = axis.x(from), b = axis.x(to), text = lasts(to - from);
    c.globalAlpha = .85;
    c.fillStyle = colors.paper;
    c.fillRect(a, axisHeight, b - a, height);
    c.globalAlpha = 1;
    c.strokeStyle = colors.quiet;
    c.setLineDash([4, 4]);
    line(a, axisHeight, a, height, b, axisHeight, b, height);
    c.setLineDash([]);
    c.fillStyle = colors.quiet;
    c.fillText(text, (a + b - c.measureText(text).width) / 2, axisHeight + 8);
  }
}

// pauses shows the pauses of queues: a band of their own, and a shade over everything.
function pauses({data, x, left, drawn}) {
  data.pauses.forEach((p, i) => {
    const from = x(p.from), to = x(p.to), y = axisHeight + i * pauseHeight;
    c.globalAlpha = .07;
    c.fillStyle = colors.paused;
    c.fillRect(from, y, to - from, bottom - y);
    c.globalAlpha = .25;
    c.fillRect(from, y + 2, to - from, pauseHeight - 4);
    c.globalAlpha = 1;
    c.fillStyle = colors.text;
    c.fillText(fit(`paused by ${p.by.replace(/^\w+:/, "")}: ${p.reason || "no reason"}`, Math.max(to - from, 220)),
      Math.max(from, left) + 5, y + pauseHeight / 2);
    drawn.pauses++;
  });
}

// behind shows what is behind the bars: silence, new processes, new versions.
function behind({data, x, left, right, drawn}) {
  for (const row of rows) {
    if (row.lane === undefined) continue;
    const lane = data.lanes[row.lane];
    for (const [from, to] of lane.silent) {
      c.strokeStyle = colors.silent;
      hatch(c, x(from), row.y, x(to) - x(from), row.h - rowGap + 1, left, right);
      drawn.silent++;
    }
    c.strokeStyle = colors.quiet;
    for (const start of lane.starts) {
      const s = Math.round(x(start)) + .5;
      line(s, row.y - 2, s, row.y + row.h - rowGap + 2);
    }
    c.fillStyle = colors.quiet;
    for (const at of lane.versions) c.fillText(lane.version, x(at) + 3, row.y + 5);
  }
}

function bars({data, x, left, right, drawn}) {
  const signs = new Map(data.sign), leases = new Map(data.lease ?? []), h = lineHeight - 2;
  let last = -1;
  for (let i = 0; i < data.row.length; i++) {
    const a = x(data.start[i]), b = x(data.end[i]);
    if (b < left || a > right) continue;
    const how = data.outcomes[data.how[i]], at = {color: colors[how], paper: colors.paper};
    drawn.bars++;
    drawn[how] = (drawn[how] ?? 0) + data.count[i];
    if (data.how[i] !== last) {
      c.fillStyle = c.strokeStyle = colors[how] ?? colors.text;
      last = data.how[i];
    }
    if (how === "reclaimed") {
      at.sign = signs.has(i) ? x(signs.get(i)) : a;
      at.lease = leases.has(i) ? x(leases.get(i)) : NaN;
    }
    for (const name of shape(c, how, a, top(data, i), Math.max(b - a, 1.5), h, at)) {
      drawn.shapes[name] = (drawn.shapes[name] ?? 0) + 1;
    }
  }
}

// gone shows which jobs went from a worker to another one.
function gone({data, x, left, right, drawn}) {
  c.strokeStyle = colors.reclaimed;
  c.globalAlpha = .8;
  for (const [from, to] of data.gone) {
    const a = x(data.end[from]), b = x(data.start[to]);
    if (b < left || a > right) continue;
    c.beginPath();
    c.moveTo(a, middle(data, from));
    c.bezierCurveTo(a + 14, middle(data, from), b - 14, middle(data, to), b, middle(data, to));
    c.stroke();
    drawn.arrows++;
  }
  c.globalAlpha = 1;
}

// refused shows the writes that came too late, each joined to its claim.
function refused({data, x, left, right, drawn}) {
  for (const m of data.marks) {
    const at = x(m.at), y = m.bar < 0 ? data.lanes[m.row].y + 4 : top(data, m.bar) + 4;
    if (at < left || at > right) continue;
    c.strokeStyle = colors.refused;
    if (m.bar >= 0) {
      c.setLineDash([2, 3]);
      line(Math.max(x(data.end[m.bar]), left), y, at, y);
      c.setLineDash([]);
      drawn.shapes.joined = (drawn.shapes.joined ?? 0) + 1;
    }
    cross(c, at, y);
    drawn.refused++;
  }
}

// waiting shows below the rows how many jobs waited at the end of each step, and how many claims failed or
// were lost within it.
function waiting({axis, right, drawn}, depth) {
  const from = Date.parse(depth.from), step = depth.step * 1000, most = Math.max(1, ...depth.queued);
  const base = bottom + depthHeight - 4, scale = (depthHeight - 12) / most;
  c.beginPath();
  c.moveTo(axis.x(from), base);
  depth.queued.forEach((queued, i) => {
    const y = base - queued * scale;
    c.lineTo(axis.x(from + i * step), y);
    c.lineTo(Math.min(axis.x(from + (i + 1) * step), right), y);
    drawn.depth = Math.max(drawn.depth, queued);
  });
  c.lineTo(Math.min(axis.x(from + depth.queued.length * step), right), base);
  c.globalAlpha = .3;
  c.fillStyle = colors.open;
  c.fill();
  c.globalAlpha = 1;
  c.fillStyle = colors.failed;
  const worst = Math.max(1, ...depth.failed.map((n, i) => n + depth.lost[i]));
  depth.failed.forEach((failed, i) => {
    const bad = failed + depth.lost[i], a = axis.x(from + i * step);
    if (bad) c.fillRect(a, base, Math.max(axis.x(from + (i + 1) * step) - a - 1, 1.5), -2 - bad / worst * 10);
  });
}

function names({data, left, drawn}, depth) {
  data.pauses.forEach((p, i) => {
    c.fillStyle = colors.quiet;
    c.fillText(fit("queue " + p.queue, left - 12), 2, axisHeight + i * pauseHeight + pauseHeight / 2);
  });
  for (const row of rows) {
    if (row.lane === undefined) {
      c.font = "600 11px " + font;
      c.fillStyle = colors.text;
      c.fillText(fit("host " + row.host, left - 10), 2, row.y + 3);
      c.font = "11px " + font;
      continue;
    }
    c.fillStyle = colors.text;
    c.fillText(fit(data.lanes[row.lane].worker, left - 22), 12, row.y + (row.h - rowGap) / 2);
    drawn.rows++;
  }
  if (!depth) return;
  c.fillStyle = colors.open;
  c.fillText(fit(`waiting, at most ${Math.max(0, ...depth.queued)}`, left - 12), 2, bottom + depthHeight / 2 - 5);
  c.fillStyle = colors.failed;
  c.fillText(fit("failed and lost", left - 12), 2, bottom + depthHeight / 2 + 9);
}
