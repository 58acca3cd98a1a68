// Keeps a page about now up to date: once something was recorded, it loads the page again and changes what differs.
// There is a stream only while the page is visible.
import {change} from "./change.js";

const main = document.getElementById("main");
const least = 1000; // milliseconds between two loads; more where a load takes long
const share = 10;
let source = null;
let timer = 0;
let loaded = performance.now();
let gap = least;

function load() {
  const began = performance.now();
  const request = new XMLHttpRequest(); // it makes a document without a sink that Trusted Types forbid
  request.open("GET", location.href);
  request.responseType = "document";
  request.onload = () => {
    const fresh = request.response?.getElementById("main");
    if (request.status !== 200 || fresh?.dataset.stream === undefined) {
      if (request.status >= 500) later(share * least);
      return;
    }
    change(main, fresh);
    loaded = performance.now();
    gap = Math.max(least, share * (loaded - began));
    document.dispatchEvent(new Event("changed"));
    listen();
  };
  request.onerror = () => later(share * least);
  request.send();
}

function later(wait) {
  clearTimeout(timer);
  timer = document.hidden ? 0 : setTimeout(() => { timer = 0; load(); }, wait);
}

function stop() {
  if (source) source.close();
  source = null;
}

function listen() {
  if (source || document.hidden || main.dataset.stream === undefined) return; // it is played, in the past
  source = new EventSource(new URL(main.dataset.stream, location.origin));
  const moved = () => {
    stop();
    later(Math.max(0, loaded + gap - performance.now()));
  };
  for (const kind of [...main.dataset.kinds.trim().split(" "), "reset"]) source.addEventListener(kind, moved);
}

if (main.dataset.stream !== undefined) {
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) return listen();
    stop();
    clearTimeout(timer);
  });
  listen();
}
