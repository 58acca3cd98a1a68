// The map above the lanes: how many jobs had not ended in the whole ledger, what went wrong when, and the view
// of the lanes as a frame, which the pointer and the keyboard move.
import {clock, day} from "./clock.js";
import {lasts} from "./lanes-axis.js";
import {colorOf as color} from "./lanes-shapes.js";

const canvas = document.querySelector("canvas[data-map]");
const frame = document.getElementById("frame");
const bad = ["refused", "failed", "reclaimed"]; // the kinds of moments that are drawn, the worst first
let depth = null, moments = [], from = 0, to = 0, view = null, move = null, grabbed = null;

const share = (time) => (time - from) / (to - from);

async function ask(address) {
  const answer = await fetch(address, {headers: {Accept: "application/json"}});
  return answer.ok ? answer.json() : null;
}

// open reads what the map shows. It calls look with the begin and the end of the view that somebody chooses.
export async function open(look) {
  if (!canvas) return;
  move = look;
  const source = new URL(canvas.dataset.map, location.origin);
  const [found, marked] = await Promise.all([ask(source), ask(new URL("moments?px=1000", source))]);
  if (!found) return;
  depth = found;
  from = Date.parse(depth.from);
  to = Date.parse(depth.to);
  moments = (marked?.items ?? []).filter((m) => bad.includes(m.kind) && Date.parse(m.at) <= to);
  canvas.parentElement.hidden = false;
  if (view) show(view);
  else draw();
}

// show puts the frame around the part of the ledger that is in view.
export function show(now) {
  view = now;
  if (!depth || !view) return;
  frame.setAttribute("aria-valuenow", String(Math.round(100 * Math.min(Math.max(share(view.from), 0), 1))));
  frame.setAttribute("aria-valuetext",
    `${day(view.from)} ${clock(view.from, true)}, ${lasts(view.to - view.from)}`);
  draw();
}

export function draw() {
  if (!depth) return;
  const ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const c = canvas.getContext("2d");
  c.scale(ratio, ratio);
  const all = depth.queued.map((n, i) => n + depth.held[i]), most = Math.max(1, ...all);
  const base = height - 6, y = (n) => base - n / most * (base - 4);
  c.beginPath();
  c.moveTo(0, base);
  depth.at.forEach((at, i) => {
    c.lineTo(i ? share(Date.parse(depth.at[i - 1])) * width : 0, y(all[i]));
    c.lineTo(share(Date.parse(at)) * width, y(all[i]));
  });
  c.lineTo(width, base);
  c.globalAlpha = .35;
  c.fillStyle = color("open");
  c.fill();
  c.globalAlpha = 1;
  const colors = Object.fromEntries(bad.map((kind) => [kind, color(kind)]));
  for (const m of [...moments].sort((a, b) => bad.indexOf(b.kind) - bad.indexOf(a.kind))) {
    c.fillStyle = colors[m.kind];
    c.fillRect(Math.min(share(Date.parse(m.at)) * width, width - 2), base, 2, 6);
  }
  if (view) {
    const a = Math.min(Math.max(share(view.from) * width, 1), width - 7);
    const b = Math.max(Math.min(share(view.to) * width, width - 1), a + 6);
    c.fillStyle = c.strokeStyle = getComputedStyle(frame).color;
    c.globalAlpha = .1;
    c.fillRect(a, 1, b - a, height - 2);
    c.globalAlpha = 1;
    c.lineWidth = 2;
    c.strokeRect(a, 1, b - a, height - 2);
  }
  canvas.dataset.shown = JSON.stringify({most: Math.max(0, ...all), moments: moments.length});
}

// go moves the view to one that begins at a time, within the ledger.
function go(begin) {
  const span = view.to - view.from, last = Math.max(to - span, from);
  begin = Math.min(Math.max(begin, from), last);
  show({from: begin, to: begin + span});
  move(begin, begin + span);
}

const timeAt = (event) => {
  const box = canvas.getBoundingClientRect();
  return from + (event.clientX - box.left) / box.width * (to - from);
};

if (canvas) {
  const map = canvas.parentElement;
  map.addEventListener("pointerdown", (event) => {
    if (!view || event.button) return;
    const time = timeAt(event), inside = time >= view.from && time <= view.to;
    grabbed = inside ? time - view.from : (view.to - view.from) / 2;
    map.setPointerCapture(event.pointerId);
    if (!inside) go(time - grabbed);
  });
  map.addEventListener("pointermove", (event) => {
    if (grabbed !== null) go(timeAt(event) - grabbed);
  });
  for (const end of ["pointerup", "pointercancel"]) map.addEventListener(end, () => { grabbed = null; });
  frame.addEventListener("keydown", (event) => {
    if (!view || event.ctrlKey || event.metaKey || event.altKey) return;
    const span = view.to - view.from;
    const begin = {ArrowLeft: view.from - span / 4, ArrowDown: view.from - span / 4, ArrowRight: view.from + span / 4,
      ArrowUp: view.from + span / 4, PageUp: view.from - span, PageDown: view.from + span, Home: from, End: to}[event.key];
    if (begin === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    go(begin);
  });
}
