// Draws what is below the rows of the lanes, on the same axis: how many jobs waited, how long they had waited, and how
// many attempts failed or were lost, step by step.
import {lasts} from "./lanes-axis.js";
import {c, colors, line, name} from "./lanes-pen.js";

export const belowHeight = 108;
const strips = [
  {title: "waiting", height: 34, color: "open", of: (s, i) => s.queued[i], text: (n) => String(n)},
  {title: "wait p99", height: 34, color: "text", of: (s, i) => s.claimed[i] ? s.wait_p99[i] : null,
    text: (n) => n < 2 ? `${Math.round(n * 1000)} ms` : lasts(n * 1000)},
  {title: "failed or lost", height: 28, color: "failed", of: (s, i) => s.failed[i] + s.lost[i], text: (n) => String(n)},
];

// mostOf is the highest value of a strip.
const mostOf = (strip, series) => series.queued.reduce((most, _, i) => Math.max(most, strip.of(series, i) ?? 0), 0);

// below draws the strips from y on. It notes the highest value of each in drawn.
export function below({axis, left, right, drawn}, series, y) {
  const from = Date.parse(series.from), step = series.step * 1000;
  for (const strip of strips) {
    const most = mostOf(strip, series), base = y + strip.height - 2, scale = (strip.height - 8) / (most || 1);
    c.fillStyle = c.strokeStyle = colors[strip.color];
    for (let i = 0; i < series.queued.length; i++) {
      const value = strip.of(series, i);
      if (!value) continue;
      const a = axis.x(from + i * step), b = Math.min(axis.x(from + (i + 1) * step), right);
      if (b < left || a > right) continue;
      const high = Math.max(value * scale, 1.5);
      c.globalAlpha = strip.color === "failed" ? 1 : .3;
      c.fillRect(a, base - high, Math.max(b - a - (strip.color === "failed" ? 1 : 0), 1), high);
      c.globalAlpha = 1;
      if (strip.color === "text") c.fillRect(a, base - high, Math.max(b - a, 1), 1.5);
    }
    c.strokeStyle = colors.line;
    line(left, base + .5, right, base + .5);
    drawn[strip.title.replaceAll(" ", "_")] = most;
    y += strip.height + 4;
  }
}

// belowNames writes the names of the strips, each with its highest value.
export function belowNames({left}, series, y) {
  for (const strip of strips) {
    const most = mostOf(strip, series);
    name(`${strip.title}, ≤ ${strip.text(most)}`, y + strip.height / 2, left, colors[strip.color]);
    y += strip.height + 4;
  }
}

// valuesAt says in words what the strips have at a time, for the crosshair.
export function valuesAt(series, time) {
  const i = Math.floor((time - Date.parse(series.from)) / series.step / 1000);
  if (!(i >= 0 && i < series.queued.length)) return [];
  const words = [`${series.queued[i]} waiting`];
  if (series.claimed[i]) words.push(`wait p99 ${strips[1].text(series.wait_p99[i])}`);
  const bad = series.failed[i] + series.lost[i];
  if (bad) words.push(`${bad} failed or lost`);
  return words;
}
