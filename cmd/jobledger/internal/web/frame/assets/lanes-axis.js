// The axis of the lanes: from times, in milliseconds since 1970, to places, and back.
export const cutWidth = 48; // pixels that a stretch takes in which nothing ran, where these are cut short

// busy returns the stretches in which something ran or was refused, in order and without overlap.
export function busy(data) {
  const begin = Date.parse(data.from), stretches = [];
  const all = data.start.map((start, i) => [start, data.end[i]]);
  for (const mark of data.marks) all.push([mark.at, mark.at]);
  for (const [from, to] of all.sort((a, b) => a[0] - b[0])) {
    const last = stretches.at(-1);
    if (last && begin + from <= last[1]) last[1] = Math.max(last[1], begin + to);
    else stretches.push([begin + from, begin + to]);
  }
  return stretches;
}

// idle returns the stretches of the view in which nothing ran for long: 20 times the median of all such
// stretches, or a quarter of the view.
function idle(view, stretches) {
  const gaps = [];
  let end = view.from;
  for (const [from, to] of [...stretches, [view.to, view.to]]) {
    if (to < view.from || from > view.to) continue;
    if (from > end) gaps.push([end, from]);
    end = Math.max(end, to);
  }
  const lengths = gaps.map(([from, to]) => to - from).sort((a, b) => a - b);
  const most = Math.min(20 * (lengths[lengths.length >> 1] ?? 0), (view.to - view.from) / 4);
  return gaps.filter(([from, to]) => to - from > most);
}

// Axis lays the view between left and right. With stretches it cuts short what is idle.
export class Axis {
  constructor(view, left, right, stretches) {
    const width = right - left, span = view.to - view.from;
    this.cuts = (stretches ? idle(view, stretches) : [])
      .filter(([from, to]) => (to - from) / span * width > 2 * cutWidth);
    const cut = this.cuts.reduce((sum, [from, to]) => sum + to - from, 0);
    this.scale = (width - this.cuts.length * cutWidth) / Math.max(span - cut, 1); // pixels a millisecond
    this.pieces = [];
    let at = left, time = view.from;
    for (const [from, to] of [...this.cuts, [view.to, Infinity]]) {
      this.pieces.push({time, at, scale: this.scale});
      at += (from - time) * this.scale;
      this.pieces.push({time: from, at, scale: to === Infinity ? this.scale : cutWidth / (to - from)});
      at += cutWidth;
      time = to;
    }
  }

  x(time) {
    let piece = this.pieces[0];
    for (const next of this.pieces) {
      if (next.time > time) break;
      piece = next;
    }
    return piece.at + (time - piece.time) * piece.scale;
  }

  time(x) {
    let piece = this.pieces[0];
    for (const next of this.pieces) {
      if (next.at > x) break;
      piece = next;
    }
    return piece.time + (x - piece.at) / piece.scale;
  }

  isCut(time) { return this.cuts.some(([from, to]) => time > from && time < to); }
}

// lasts says how long a stretch is.
export function lasts(ms) {
  for (const [unit, length] of [["d", 86400000], ["h", 3600000], ["min", 60000], ["s", 1000]]) {
    if (ms >= 2 * length || unit === "s") return `${Math.round(ms / length)} ${unit}`;
  }
}

// step returns the distance of ticks, of which each has some 90 pixels.
export function step(scale) {
  const steps = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10800, 21600, 43200, 86400, 604800].map((s) => s * 1000);
  return steps.find((s) => s * scale >= 90) ?? 2592000000;
}
