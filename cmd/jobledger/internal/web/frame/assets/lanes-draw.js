// Draws the lanes on their canvas.
import {Axis} from "./lanes-axis.js";
import {acts, axisHeight, bandNames, bandsOf, cuts, deploys, pauses, ticks} from "./lanes-above.js";
import {below, belowHeight, belowNames} from "./lanes-below.js";
import {c, canvas, colors, fit, line, name, write} from "./lanes-pen.js";
import {cross, hatch, shape} from "./lanes-shapes.js";

export const lineHeight = 11;
const rowGap = 7, hostHeight = 22;
let rows = [], bottom = 0, bands = null, fold = null;

// lay computes where the rows of data are: those of each group below its name, and last those of workers that had
// no claims, which are folded unless open.
export function lay(data, open) {
  rows = [];
  bands = bandsOf(data);
  let y = bands.end, group = null;
  data.lanes.forEach((lane, i) => {
    if (lane.group !== group && data.group !== "none") {
      rows.push({title: lane.group ? `${data.group} ${lane.group}` : `no ${data.group}`, y: y + hostHeight / 2});
      y += hostHeight;
    }
    group = lane.group;
    const h = lane.slots * lineHeight + rowGap;
    rows.push({lane, y, h});
    lane.y = y;
    y += h;
  });
  fold = null;
  if (data.idle.length) {
    fold = {y, h: hostHeight, text: `${data.idle.length} without claims ${open ? "▾" : "▸"}`};
    rows.push({title: fold.text, y: y + hostHeight / 2});
    y += hostHeight;
    for (const lane of open ? data.idle : []) {
      rows.push({lane, y, h: lineHeight + rowGap});
      y += lineHeight + rowGap;
    }
  }
  bottom = Math.max(y + 6, 64);
}

// folds reports whether a place, from the left and from above, is the name of what is folded.
export const folds = (x, y) => fold !== null && x < 170 && y >= fold.y && y < fold.y + fold.h;

// top is where a bar is, from above.
export const top = (data, bar) => data.lanes[data.row[bar]].y + data.slot[bar] * lineHeight;
const middle = (data, bar) => top(data, bar) + 4.5;

// draw draws everything, says on the canvas what was drawn, and returns the axis, and the spots that can be pointed
// at besides bars. The view has from and to; stretches are those in which something runs, where idle time is cut
// short; series may not be there yet.
export function draw({data, view, series, stretches, current}) {
  const ratio = devicePixelRatio || 1, height = bottom + belowHeight;
  const right = Math.max(canvas.parentElement.clientWidth, 200), left = right < 640 ? 92 : 170;
  canvas.width = Math.round(right * ratio);
  canvas.height = Math.round(height * ratio);
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, right, height);
  write(false);
  const axis = new Axis(view, left, right, stretches);
  const begin = Date.parse(data.from), x = (ms) => axis.x(begin + ms);
  const drawn = {bars: 0, succeeded: 0, failed: 0, reclaimed: 0, refused: 0, silent: 0, pauses: 0, arrows: 0, rows: 0, groups: 0,
    acts: 0, named: 0, deploys: 0, cuts: axis.cuts.length, shapes: {}, current};
  const at = {data, view, axis, x, left, right, drawn, bands, bottom, spots: []};
  ticks(at, height);
  c.save();
  c.beginPath();
  c.rect(left, axisHeight - 4, right - left, height);
  c.clip();
  pauses(at);
  behind(at);
  deploys(at);
  bars(at);
  gone(at);
  refused(at);
  acts(at);
  if (current >= 0) {
    const from = x(data.start[current]), to = x(data.end[current]);
    c.strokeStyle = colors.text;
    c.lineWidth = 2;
    c.strokeRect(from - 2, top(data, current) - 2, Math.max(to - from, 2) + 4, lineHeight + 2);
    c.lineWidth = 1;
  }
  if (series) below(at, series, bottom);
  cuts(at, height);
  c.restore();
  names(at);
  if (series) belowNames(at, series, bottom);
  canvas.dataset.drawn = JSON.stringify(drawn);
  return {axis, spots: at.spots};
}

// behind shows what is behind the bars: silence, new processes, new versions.
function behind({x, left, right, drawn}) {
  for (const row of rows) {
    if (!row.lane) continue;
    const lane = row.lane;
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
    c.fillStyle = colors.open;
    for (const at of lane.versions) c.fillRect(Math.round(x(at)) - 1, row.y - 2, 3, row.h - rowGap + 4);
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
function refused({data, x, left, right, drawn, spots}) {
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
    spots.push({x: at, y, kind: "refused", at: m.at, pos: m.pos, text: m.text || "A write that came too late"});
    drawn.refused++;
  }
}

function names({left, drawn, data, bands}) {
  bandNames({bands, left});
  for (const row of rows) {
    if (!row.lane) {
      write(true);
      name(row.title, row.y + 3, left, colors.text);
      write(false);
      drawn.groups++;
      continue;
    }
    c.fillStyle = colors.text;
    const host = data.group === "host" || data.hosts === 1 ? "" : ` (${row.lane.host})`;
    c.fillText(fit(row.lane.worker + host, left - 22), 12, row.y + (row.h - rowGap) / 2);
    drawn.rows++;
  }
}
