// Says whether the page is true now: live, as of the time at which it was made, or no longer connected. It renews the
// ages on it, each second.
import {clock} from "./clock.js";

const sign = document.getElementById("sign"), watch = document.getElementById("watch"), main = document.getElementById("main");
const made = Date.parse(document.querySelector("header")?.dataset.made ?? "") || Date.now();
const ahead = made - Date.now(); // how far the clock of the server is ahead of this one
const silent = 4000; // milliseconds without a sign of life, after which the server is taken for away
let heard = 0; // when there was a sign of life; 0: none is awaited
let stale = null; // the bar that says that the page is old
let over = false; // the session has ended

const now = () => Date.now() + ahead;

// age is how long ago a time is, in its two largest units.
function age(time) {
  const s = Math.max(0, Math.floor((now() - time) / 1000));
  const text = (big, unit, small, of) => `${big}${unit}` + (small ? `${small}${of}` : "");
  if (s < 60) return `${s}s ago`;
  if (s < 3600) return text(Math.trunc(s / 60), "m", s % 60, "s") + " ago";
  if (s < 86400) return text(Math.trunc(s / 3600), "h", Math.trunc(s / 60) % 60, "m") + " ago";
  return text(Math.trunc(s / 86400), "d", Math.trunc(s / 3600) % 24, "h") + " ago";
}

// show puts up the bar: the page is of the time of the last sign of life.
function show(text, button) {
  if (!stale) {
    stale = document.createElement("p");
    stale.id = "stale";
    stale.setAttribute("role", "alert");
    main.before(stale);
  }
  stale.replaceChildren(text, " ", button);
  document.documentElement.dataset.stale = "";
  sign?.classList.remove("live");
  for (const form of main.querySelectorAll("form[method=post]")) form.inert = true;
}

const since = () => clock((heard || Date.now()) + ahead, true);

// lost says that the server is not there any more.
export function lost() {
  if (over || stale || main.dataset.stream === undefined && !document.getElementById("events")) return;
  const again = document.createElement("button");
  again.type = "button";
  again.textContent = "Try now";
  again.addEventListener("click", () => document.dispatchEvent(new Event("again")));
  show(`Not connected since ${since()}. What you see is of then.`, again);
  if (sign) sign.textContent = `✕ not connected since ${since()}`;
}

// ended says that the session has ended.
export function ended() {
  if (over) return;
  over = true;
  const link = document.createElement("a");
  link.href = (document.documentElement.dataset.prefix ?? "") + "/login";
  link.textContent = "Log in";
  show(`Your session has ended. What you see is of ${since()}.`, link);
  if (sign) sign.textContent = `✕ session ended`;
}

// alive says that the page is true now.
export function alive() {
  if (over) return;
  heard = Date.now();
  if (sign && sign.textContent !== "● live") sign.textContent = "● live";
  sign?.classList.add("live");
  document.getElementById("refresh")?.setAttribute("hidden", "");
  if (!stale) return;
  stale.remove();
  stale = null;
  delete document.documentElement.dataset.stale;
  for (const form of main.querySelectorAll("form[method=post]")) form.inert = false;
}

// isStale reports whether the page says that it is old.
export const isStale = () => stale !== null;

// rest says that nothing is awaited: nobody sees the page.
export function rest() { heard = 0; }

// wake waits for a sign of life from now on.
export function wake() { heard = Date.now(); }

const shown = sign?.textContent;

// renew shows the ages as they are now.
function renew() {
  for (const element of document.querySelectorAll("time[data-age]")) {
    const text = age(Date.parse(element.dateTime));
    if (element.textContent !== text) element.textContent = text;
  }
}

document.addEventListener("changed", renew);
setInterval(() => {
  renew();
  if (watch) watch.textContent = sign?.textContent === "● live" ? clock(now(), true) : "";
  if (heard && !document.hidden && Date.now() - heard > silent) lost();
  if (sign && !heard && !stale && !over && now() - made > 60000) sign.textContent = `${shown}, ${age(made)}`;
}, 250);
