// Draws what is above the rows of the lanes, and over them: the axis, new versions, what operators did, and the pauses
// of queues.
import {clock, day, offsetOf} from "./clock.js";
import {lasts, step} from "./lanes-axis.js";
import {c, colors, fit, line, name} from "./lanes-pen.js";

export const axisHeight = 26;
const bandHeight = 18, levelHeight = 13;

// person is the name of an actor without its kind and host.
export const person = (actor) => actor.replace(/^\w+:/, "").replace(/@.*/, "");

// bandsOf says where the bands above the rows are: y of each, and where the rows begin.
export function bandsOf(data) {
  const queues = [...new Set(data.pauses.map((p) => p.queue))], bands = {pauses: new Map()};
  let y = axisHeight;
  if (data.deploys.length) {
    bands.deploys = y;
    y += bandHeight;
  }
  if (data.acts.length) {
    bands.acts = y;
    bands.levels = data.acts.length > 1 ? 2 : 1;
    y += bands.levels * levelHeight + 6;
  }
  for (const queue of queues) {
    bands.pauses.set(queue, y);
    y += bandHeight;
  }
  bands.end = y;
  return bands;
}

export function ticks({view, axis, left, right}, height) {
  const tick = step(axis.scale), offset = -offsetOf(view.from);
  c.strokeStyle = colors.line;
  c.fillStyle = colors.quiet;
  c.lineWidth = 1;
  let free = left - 20;
  for (let t = Math.ceil((view.from - offset) / tick) * tick + offset; t <= view.to; t += tick) {
    if (axis.isCut(t)) continue;
    const at = Math.round(axis.x(t)) + .5;
    line(at, axisHeight - 4, at, height);
    const text = tick >= 86400000 ? day(t) : clock(t, tick < 60000);
    const half = c.measureText(text).width / 2;
    if (at - half < free || at + half > right) continue;
    c.fillText(text, at - half, 11);
    free = at + half + 6;
  }
}

// cuts shows where idle time is cut short, and how long it was.
export function cuts({axis}, height) {
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

// pauses shows the pauses of queues: a band for each queue, and a shade over all rows.
export function pauses({data, x, left, right, drawn, bands, bottom}) {
  for (const p of data.pauses) {
    const from = x(p.from), to = x(p.to), y = bands.pauses.get(p.queue);
    if (to < left || from > right) continue;
    c.globalAlpha = .07;
    c.fillStyle = colors.paused;
    c.fillRect(from, y, to - from, bottom - y);
    c.globalAlpha = .25;
    c.fillRect(from, y + 2, to - from, bandHeight - 4);
    c.globalAlpha = 1;
    c.fillStyle = colors.text;
    c.fillText(fit(`paused by ${person(p.by)}: ${p.reason || "no reason"}`, Math.max(to - from, 220)),
      Math.max(from, left) + 5, y + bandHeight / 2);
    drawn.pauses++;
  }
}

// deploys shows new versions: a line through all rows, and from which version to which.
export function deploys({data, x, left, right, drawn, bands, bottom, spots}) {
  let free = left;
  for (const d of data.deploys) {
    const at = Math.round(x(d.at)) + .5, y = bands.deploys + bandHeight / 2;
    if (at < left || at > right) continue;
    const text = `${d.from || "no version"} → ${d.to || "no version"}`, width = c.measureText(text).width;
    c.strokeStyle = c.fillStyle = colors.open;
    c.setLineDash([3, 3]);
    line(at, bands.deploys, at, bottom);
    c.setLineDash([]);
    if (at >= free) {
      c.fillText(text, at + 4 + width > right ? at - 4 - width : at + 4, y);
      free = at + 12 + width;
    }
    spots.push({x: at, y, kind: "deploy", at: d.at, text: `${text}: ${d.workers.join(", ")}`});
    drawn.deploys++;
  }
}

// near joins acts of one person that are less than 6 pixels from each other: their words share a place.
function near(data, x) {
  const groups = [];
  for (const a of data.acts) {
    const at = x(a.at), last = groups.at(-1), by = person(a.by);
    if (last && last.by === by && at - last.at < 6) last.acts.push(a);
    else groups.push({at, by, acts: [a]});
  }
  return groups;
}

// acts shows what operators did, each with its actor as far as there is room.
export function acts({data, x, left, right, drawn, bands, spots}) {
  const free = Array(bands.levels).fill(left);
  for (const {at, by, acts} of near(data, x)) {
    if (at < left || at > right) continue;
    const text = `${by}: ${acts.map((a) => a.words).join(", ")}`, width = c.measureText(text).width;
    const begin = at + 8 + width > right ? at - 8 - width : at + 8;
    let level = free.findIndex((end) => begin >= end);
    const named = level >= 0;
    if (!named) level = free.length - 1;
    const y = bands.acts + 3 + (level + .5) * levelHeight;
    c.fillStyle = colors.paused;
    c.beginPath();
    c.moveTo(at - 4, y - 4);
    c.lineTo(at + 4, y - 4);
    c.lineTo(at, y + 4);
    c.fill();
    if (named) {
      c.fillStyle = colors.text;
      c.fillText(text, begin, y);
      free[level] = Math.max(at + 8, begin + width + 10);
    }
    for (const a of acts) {
      spots.push({x: at, y, kind: "act", at: a.at, pos: a.pos, text: `${a.by}: ${a.words}${a.reason ? ", " + a.reason : ""}`});
    }
    drawn.acts += acts.length;
    drawn.named += named ? acts.length : 0;
  }
}

// bandNames writes the names of the bands.
export function bandNames({bands, left}) {
  if (bands.deploys !== undefined) name("new versions", bands.deploys + bandHeight / 2, left, colors.quiet);
  if (bands.acts !== undefined) name("operators", bands.acts + 3 + levelHeight / 2, left, colors.quiet);
  for (const [queue, y] of bands.pauses) name("queue " + queue, y + bandHeight / 2, left, colors.quiet);
}
