// What every page has: keys, and the bar of moments. All of it is also there as links.
import {stamp} from "./clock.js";
import {pins} from "./pin.js";
import {player} from "./play.js";
import "./sign.js";

const prefix = document.documentElement.dataset.prefix ?? "";
const moment = document.getElementById("moment");
const off = "jobledger-keys-off";
const button = document.getElementById("keys"), help = document.getElementById("help");
let leader = 0;
let play = null;

function keysOff() {
  try { return localStorage.getItem(off) === "1"; } catch { return false; }
}

const pages = {o: "", j: "jobs", f: "failures", q: "queues", s: "schedules", w: "workers", l: "lanes", e: "events", t: "tail", d: "diff", i: "incident",
  v: "integrity"};

// step moves the focus to the first link of the next row of a table, or of the one before.
function step(by) {
  const rows = [...document.querySelectorAll("main tbody tr")].filter((row) => row.querySelector("a") && row.checkVisibility());
  const here = rows.indexOf(document.activeElement.closest("tbody tr"));
  rows[Math.min(Math.max(here + by, 0), rows.length - 1)]?.querySelector("a").focus();
}

// Each key is also there as a link, a field or a button.
const keys = {
  "j": () => step(1),
  "k": () => step(-1),
  "x": () => document.activeElement.closest("tr")?.querySelector("input[type=checkbox]")?.click(),
  "a": () => {
    const acts = document.querySelector("main details.acts, main .acts details");
    if (!acts) return;
    acts.open = true;
    acts.querySelector("summary").focus();
  },
  ".": () => {
    if (!play) return;
    document.getElementById("asof").open = true;
    play();
  },
  "?": () => help?.showModal(),
  "/": () => {
    const field = document.querySelector("main form.filter input[name=find]") ?? document.getElementById("search");
    if (field) field.focus(); else location.href = prefix + "/jobs";
  },
};
for (const key of ["n", "p", "[", "]"]) keys[key] = () => document.querySelector(`a[data-key="${key}"]`)?.click();

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || keysOff() || help?.open) return;
  if (event.target.closest("input:not(.slider, [type=checkbox]), select, textarea, canvas")) return;
  if (Date.now() - leader < 1500 && event.key in pages) {
    const path = `${prefix}/${pages[event.key]}`;
    const link = document.querySelector(`.side li a:is([href="${path}"], [href^="${path}?"])`);
    location.href = link ? link.href : path;
    return;
  }
  leader = event.key === "g" ? Date.now() : 0;
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});

if (button) {
  const say = () => { button.textContent = keysOff() ? "Turn keys on" : "Turn keys off"; };
  const opener = document.getElementById("help-open");
  say();
  button.addEventListener("click", () => {
    try { localStorage.setItem(off, keysOff() ? "0" : "1"); } catch { /* keys stay on */ }
    say();
  });
  if (opener) {
    opener.hidden = false;
    opener.dataset.own = "";
    opener.addEventListener("click", () => help.showModal());
  }
}

// A click beside what As of… unfolds, and Escape, fold it again.
const asof = document.getElementById("asof");
if (asof && !asof.classList.contains("past")) {
  document.addEventListener("click", (event) => {
    if (asof.open && !asof.contains(event.target) && !asof.classList.contains("past")) asof.open = false;
  });
  asof.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || document.documentElement.dataset.playing !== undefined) return;
    asof.open = false;
    asof.querySelector("summary").focus();
  });
}

// The slider goes by position; while it moves, the label says which event that is.
if (moment && Number(moment.dataset.tail) > 1) {
  const tail = Number(moment.dataset.tail);
  const slider = document.createElement("input");
  slider.type = "range";
  slider.min = "1";
  slider.max = String(tail);
  slider.value = moment.dataset.pos;
  slider.setAttribute("aria-label", "Position in the ledger");
  slider.className = "slider";
  moment.append(slider);
  const label = document.getElementById("when");
  const at = (pos) => {
    const address = new URL(location.href);
    if (pos >= tail) address.searchParams.delete("at"); else address.searchParams.set("at", "pos:" + pos);
    return address;
  };
  const go = (pos) => { location.href = at(pos); };
  const events = async (query) => {
    const answer = await fetch(`${prefix}/api/v1/events?${query}`);
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return (await answer.json()).items;
  };
  let waiting = 0;
  slider.addEventListener("input", () => {
    const pos = Number(slider.value);
    label.textContent = `pos ${pos} of ${tail}`;
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const [event] = await events(`after=${pos - 1}&limit=1`).catch(() => []);
      if (event && Number(slider.value) === pos) label.textContent = `pos ${pos} of ${tail}, ${stamp(Date.parse(event.at))}, ${event.kind}`;
    }, 60);
  });
  slider.addEventListener("change", () => go(Number(slider.value)));
  pins({moment, label, tail, prefix});
  play = player({moment, slider, label, tail, at, events});
  const marks = moment.querySelector(".marks");
  marks.addEventListener("click", (event) => {
    const box = marks.getBoundingClientRect();
    go(Math.max(1, Math.round((event.clientX - box.left) / box.width * tail)));
  });
}

for (const code of document.querySelectorAll(".copy code")) {
  if (!navigator.clipboard) break;
  const copy = document.createElement("button");
  copy.type = "button";
  copy.textContent = "Copy";
  copy.setAttribute("aria-label", "Copy the " + code.parentElement.previousElementSibling.textContent);
  copy.addEventListener("click", async () => {
    const text = code.textContent.startsWith("/") ? location.origin + code.textContent : code.textContent;
    await navigator.clipboard.writeText(text);
    copy.textContent = "Copied";
  });
  code.after(" ", copy);
}
