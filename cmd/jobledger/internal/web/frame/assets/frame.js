// What every page has: keys, and the bar of moments. All of it is also there as links.
import {stamp} from "./clock.js";
import {pins} from "./pin.js";
import {player} from "./play.js";
import "./sign.js";

const prefix = document.documentElement.dataset.prefix ?? "";
const moment = document.getElementById("moment");
const off = "jobledger-keys-off";
const button = document.getElementById("keys");
let leader = 0;
let play = null;

function keysOff() {
  try { return localStorage.getItem(off) === "1"; } catch { return false; }
}

const pages = {o: "/", l: "/lanes", j: "/jobs", f: "/failures", w: "/workers", d: "/diff", t: "/tail", i: "/incident"};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || keysOff()) return;
  if (event.target.closest("input:not(.slider), select, textarea, canvas")) return;
  if (Date.now() - leader < 1500 && pages[event.key]) {
    const link = document.querySelector(`nav a[href^="${prefix + pages[event.key]}"]`);
    location.href = link ? link.href : prefix + pages[event.key];
    return;
  }
  leader = event.key === "g" ? Date.now() : 0;
  const link = ["n", "p", "[", "]"].includes(event.key) ? document.querySelector(`a[data-key="${event.key}"]`) : null;
  if (link) {
    event.preventDefault();
    link.click();
  } else if (event.key === "k" && play) {
    event.preventDefault();
    play();
  } else if (event.key === "?" && button) {
    event.preventDefault();
    const keys = button.closest("details");
    keys.open = true;
    keys.querySelector("summary").focus();
    button.scrollIntoView({block: "nearest"});
  } else if (event.key === "/") {
    event.preventDefault();
    const field = document.querySelector("main form.filter input[name=find]") ?? document.getElementById("search");
    if (field) field.focus(); else location.href = prefix + "/jobs";
  }
});

if (button) {
  const say = () => { button.textContent = keysOff() ? "Turn keys on" : "Turn keys off"; };
  button.hidden = false;
  say();
  button.addEventListener("click", () => {
    try { localStorage.setItem(off, keysOff() ? "0" : "1"); } catch { /* keys stay on */ }
    say();
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
