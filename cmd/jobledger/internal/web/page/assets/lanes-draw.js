// Draws the lanes on their canvas.
import {Axis} from "./lanes-axis.js";
import {acts, axisHeight, bandNames, bandsOf, cuts, deploys, pauses, ticks} from "./lanes-above.js";
import {below, belowHeight, belowNames} from "./lanes-below.js";
import {c, canvas, colors, fit, line, name, write} from "./lanes-pen.js";
import {cross, hatch, shape} from "./lanes-shapes.js";

export const lineHeight = 11;
const rowGap = 7, hostHeight = 22;
let rows = [], bottom = 0, bands = null;

// lay computes where the rows of data are.
export function lay(data) {
  const hosts = new Map();
  data.lanes.forEach((lane, i) => {
    if (!hosts.has(lane.host)) hosts.set(lane.host, []);
    hosts.get(lane.host).push(i);
  });
  rows = [];
  bands = bandsOf(data);
  let y = bands.end;
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
  const drawn = {bars: 0, succeeded: 0, failed: 0, reclaimed: 0, refused: 0, silent: 0, pauses: 0, arrows: 0, rows: 0,
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
    if (row.lane === undefined) {
      write(true);
      name("host " + row.host, row.y + 3, left, colors.text);
      write(false);
      continue;
    }
    c.fillStyle = colors.text;
    c.fillText(fit(data.lanes[row.lane].worker, left - 22), 12, row.y + (row.h - rowGap) / 2);
    drawn.rows++;
  }
}
