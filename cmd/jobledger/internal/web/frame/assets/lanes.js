// Shows who had which job. The picture is a canvas; the table below it has the same in words.
import {clock, exact, stamp} from "./clock.js";
import {busy, lasts} from "./lanes-axis.js";
import {valuesAt} from "./lanes-below.js";
import {draw as drawn, folds, lay, lineHeight, top} from "./lanes-draw.js";
import {readColors} from "./lanes-pen.js";
import {sum} from "./lanes-sum.js";
import {followPage} from "./lanes-follow.js";
import {follow, offer} from "./lanes-save.js";
import {draw as drawMap, open as openMap, show as showInMap} from "./lanes-map.js";
import {plainJSON} from "./plain.js";

const prefix = document.documentElement.dataset.prefix ?? "";
const canvas = document.querySelector("canvas[data-lanes]");
const said = document.getElementById("said");
const form = document.getElementById("window");
const idle = document.getElementById("idle");
const cross = document.getElementById("cross");
const chosen = document.getElementById("chosen");
const source = new URL(canvas.dataset.lanes, location.origin);
let data = null, view = null, series = null, stretches = [], axis = null, spots = [], order = [], current = -1;
const loaded = performance.now();
let open = false; // the rows without claims
let asking = new AbortController(), wanted = null, drag = null, marked = null;

function draw() {
  ({axis, spots} = drawn({data, view, series, stretches: idle.checked ? stretches : null, current}));
  showInMap(view);
}

// begins and ends are when a claim did.
const begins = (i) => Date.parse(data.from) + data.start[i];
const ends = (i) => Date.parse(data.from) + data.end[i];

// end is the last moment that can be shown: that of the page, or the server's now.
const end = () => Date.parse(canvas.dataset.until) + (canvas.dataset.past ? 0 : performance.now() - loaded);

// withAt is a query about the moment of the page.
function withAt(query) {
  if (source.searchParams.has("at")) query.set("at", source.searchParams.get("at"));
  return query;
}

function link(text, href) {
  const a = document.createElement("a");
  a.href = href;
  a.append(text);
  return a;
}

function describe(i) {
  const how = data.outcomes[data.how[i]], lane = data.lanes[data.row[i]];
  const from = clock(begins(i), true), to = clock(ends(i), true);
  said.replaceChildren();
  if (data.count[i] > 1) {
    said.append(`${lane.worker}: ${data.count[i]} short claims from ${from} to ${to}, ${how}. Zoom in to see each.`);
    return;
  }
  const text = how === "open" ? `since ${from}, has not ended` : `${from} to ${to}, ${how}`;
  said.append(`${lane.worker}: ${text}. `, link("Open the job", prefix + "/events/" + data.event[i]));
}

function choose(i, focus) {
  current = i;
  describe(i);
  if (focus && (ends(i) < view.from || begins(i) > view.to)) {
    const half = (view.to - view.from) / 2;
    look(begins(i) - half, begins(i) + half);
  }
  draw();
}

// select offers what can be done with a stretch of time.
function select(from, to) {
  [from, to] = [Math.min(from, to), Math.max(from, to)];
  const window = withAt(new URLSearchParams({from: new Date(from).toISOString(), to: new Date(to).toISOString()}));
  const command = document.createElement("code");
  command.append(`jobledger export --format=csv --from=${window.get("from")} --to=${window.get("to")}`);
  const closer = new URLSearchParams(window);
  for (const name of ["queue", "worker", "group"]) {
    if (source.searchParams.has(name)) closer.set(name, source.searchParams.get(name));
  }
  said.replaceChildren(`${clock(from, true)} to ${clock(to, true)}, ${lasts(to - from)}: `,
    link("Zoom in", prefix + "/lanes?" + closer), " · ", link("What changed", prefix + "/diff?" + window), " · ",
    link("Make an incident of it", prefix + "/incident?" + window), " · ", command);
}

// mark begins a selection at the current claim, or ends it with the current claim.
function mark() {
  if (current < 0) return;
  if (marked === null) {
    marked = current;
    said.append(" The selection begins here; s at another claim ends it.");
    return;
  }
  select(Math.min(begins(marked), begins(current)), Math.max(ends(marked), ends(current)));
  marked = null;
}

// look shows another window: at once what is there, and soon the rest.
function look(from, to) {
  const last = end(), span = Math.max(to - from, 1000);
  if (from + span > last) from = last - span;
  view = {from, to: from + span};
  draw();
  clearTimeout(wanted);
  wanted = setTimeout(load, 250);
}

// load reads what is in view. What was asked for before is given up: the server need not finish it.
async function load() {
  asking.abort();
  asking = new AbortController();
  try {
    await read(asking.signal);
  } catch (problem) {
    if (problem.name !== "AbortError") throw problem;
  }
}

async function read(signal) {
  const width = Math.max(canvas.parentElement.clientWidth, 200);
  if (view) {
    source.searchParams.set("from", new Date(view.from).toISOString());
    source.searchParams.set("to", new Date(view.to).toISOString());
  }
  source.searchParams.set("px", String(Math.min(Math.round(width), 8192)));
  const answer = await fetch(source, {headers: {Accept: "application/json"}, signal});
  if (!answer.ok) {
    said.textContent = "The lanes cannot be read: " + ((await answer.json()).detail ?? answer.status);
    canvas.hidden = false;
    return;
  }
  data = plainJSON(await answer.text());
  if (view) {
    const address = new URL(location.href);
    for (const name of ["from", "to"]) {
      address.searchParams.set(name, source.searchParams.get(name));
      form.elements[name].value = exact(view[name]);
    }
    history.replaceState(null, "", address);
    follow(source.searchParams.get("from"), source.searchParams.get("to"));
    followPage();
  }
  view = {from: Date.parse(data.from), to: Date.parse(data.to)};
  current = act = -1;
  marked = series = null;
  stretches = busy(data);
  order = data.row.map((_, i) => i).sort((a, b) => data.row[a] - data.row[b] || data.start[a] - data.start[b]);
  canvas.hidden = idle.closest("p").hidden = false;
  readColors();
  data.hosts = new Set([...data.lanes, ...data.idle].map((lane) => lane.host)).size;
  lay(data, open);
  sum(data, open, fold);
  draw();
  offer(canvas, described);
  await readSeries(signal);
}

// fold shows the rows of workers without claims, or folds them.
function fold() {
  open = !open;
  lay(data, open);
  sum(data, open, fold);
  draw();
}

// described says what the picture shows, and what its file is to be called.
function described() {
  const [from, to] = [view.from, view.to].map((ms) => new Date(ms).toISOString());
  const short = (text) => text.slice(0, 19).replaceAll(":", "");
  return {title: `${stamp(view.from)} to ${stamp(view.to)}`, file: `lanes-${short(from)}Z-${short(to)}Z.png`};
}

// readSeries adds what is below the rows, which takes longer.
async function readSeries(signal) {
  const address = new URL("series", source);
  for (const name of ["at", "from", "to", "queue"]) {
    if (source.searchParams.has(name)) address.searchParams.set(name, source.searchParams.get(name));
  }
  const answer = await fetch(address, {headers: {Accept: "application/json"}, signal});
  if (!answer.ok) return;
  series = await answer.json();
  draw();
}

function barAt(event) {
  const box = canvas.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
  const begin = Date.parse(data.from);
  let best = -1, distance = 8;
  for (let i = 0; i < data.row.length; i++) {
    const y = top(data, i);
    if (py < y - 1 || py > y + lineHeight) continue;
    const a = axis.x(begin + data.start[i]), b = axis.x(begin + data.end[i]);
    const d = px < a ? a - px : px > b ? px - b : 0;
    if (d < distance) [best, distance] = [i, d];
  }
  return best;
}

// spotsAt is what can be pointed at besides bars: an act, a new version, a write that came too late.
function spotsAt(event) {
  const box = canvas.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
  return spots.filter((s) => Math.abs(s.x - px) < 7 && Math.abs(s.y - py) < 7);
}

// say shows in words what spots are about.
function say(some) {
  said.replaceChildren();
  for (const spot of some) {
    said.append(`${clock(Date.parse(data.from) + spot.at, true)} ${spot.text}. `);
    if (spot.pos) said.append(link(`pos ${spot.pos}`, prefix + "/events/" + spot.pos), " ");
  }
}

const timeAt = (event) => Math.min(Math.max(axis.time(event.clientX - canvas.getBoundingClientRect().left), view.from),
  view.to);

function zoom(factor, around) {
  const span = (view.to - view.from) * factor, at = around ?? (view.from + view.to) / 2;
  const share = (at - view.from) / (view.to - view.from);
  look(at - share * span, at - share * span + span);
}

function go(by, keep) {
  const at = order.indexOf(current);
  for (let i = at + by; i >= 0 && i < order.length; i += by) {
    if (keep(order[i])) return choose(order[i], true);
  }
}

// point shows the time under the pointer, and what the strips below have then.
function point(event) {
  const time = timeAt(event), words = [clock(time, true)];
  if (series) words.push(...valuesAt(series, time));
  cross.hidden = false;
  cross.style.left = axis.x(time) + "px";
  cross.dataset.text = words.join(" · ");
  cross.classList.toggle("end", axis.x(time) > canvas.clientWidth - 240);
}

// nextAct says what operators did next, from the first one on.
let act = -1;
function nextAct() {
  const all = spots.filter((s) => s.kind === "act");
  if (!all.length) return;
  act = (act + 1) % all.length;
  say([all[act]]);
}

function stretch(from, to) {
  const a = axis.x(Math.min(from, to)), b = axis.x(Math.max(from, to));
  chosen.hidden = false;
  chosen.style.left = a + "px";
  chosen.style.width = b - a + "px";
}

canvas.addEventListener("keydown", (event) => {
  if (!data || event.ctrlKey || event.metaKey || event.altKey) return;
  const lane = current < 0 ? -1 : data.row[current];
  const lost = (i) => ["reclaimed", "failed"].includes(data.outcomes[data.how[i]]);
  const act = {
    ArrowRight: () => go(1, () => true), ArrowLeft: () => go(-1, () => true),
    ArrowDown: () => go(1, (i) => data.row[i] !== lane), ArrowUp: () => go(-1, (i) => data.row[i] !== lane),
    n: () => go(1, (i) => data.outcomes[data.how[i]] === "reclaimed"),
    f: () => go(1, lost),
    o: nextAct,
    s: mark,
    w: fold,
    c: () => idle.click(),
    "+": () => zoom(.5), "=": () => zoom(.5), "-": () => zoom(2),
    0: () => {
      const all = new URL(location.href);
      all.searchParams.delete("from");
      all.searchParams.delete("to");
      location.href = all.href;
    },
    Enter: () => { if (current >= 0 && data.count[current] === 1) location.href = prefix + "/events/" + data.event[current]; },
    Escape: () => {
      current = -1;
      marked = null;
      chosen.hidden = true;
      said.replaceChildren();
      draw();
    },
  }[event.key];
  if (!act) return;
  event.preventDefault();
  event.stopPropagation();
  act();
});
canvas.addEventListener("wheel", (event) => {
  if (!data || !event.ctrlKey) return;
  event.preventDefault();
  zoom(event.deltaY < 0 ? .8 : 1.25, timeAt(event));
}, {passive: false});
canvas.addEventListener("pointerdown", (event) => {
  if (!data) return;
  const box = canvas.getBoundingClientRect();
  if (folds(event.clientX - box.left, event.clientY - box.top)) return fold();
  drag = {x: event.clientX, from: view.from, to: view.to, begin: event.shiftKey ? timeAt(event) : null, moved: false};
  chosen.hidden = true;
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  if (!data || !axis) return;
  point(event);
  if (!drag) return;
  const by = event.clientX - drag.x;
  if (Math.abs(by) > 4) drag.moved = true;
  if (!drag.moved) return;
  if (drag.begin !== null) return stretch(drag.begin, timeAt(event));
  const ms = by / axis.scale;
  look(drag.from - ms, drag.to - ms);
});
canvas.addEventListener("pointerup", (event) => {
  const {moved, begin} = drag ?? {};
  drag = null;
  if (!data) return;
  if (moved) {
    if (begin !== null) select(begin, timeAt(event));
    return;
  }
  const some = spotsAt(event), i = barAt(event);
  if (some.length) say(some);
  else if (i >= 0) choose(i, false);
});
canvas.addEventListener("pointerleave", () => { cross.hidden = true; });
idle.checked = sessionStorage.getItem("idle") === "cut";
idle.addEventListener("change", () => {
  sessionStorage.setItem("idle", idle.checked ? "cut" : "");
  chosen.hidden = true;
  if (data) draw();
});
form.elements.group?.addEventListener("change", () => form.requestSubmit());
addEventListener("resize", () => {
  if (!data) return;
  draw();
  drawMap();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  if (!data) return;
  readColors();
  draw();
  drawMap();
});
load();
openMap((from, to) => { if (data) look(from, to); });
