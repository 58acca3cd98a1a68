// Keeps a page about now up to date: once something was recorded, and every few seconds for its ages, it loads the page
// again and changes what differs. There is a stream only while the page is visible.
import {renew} from "./change.js";
import {alive, ended, isStale, lost, rest, wake} from "./sign.js";

const main = document.getElementById("main");
const least = 1000; // milliseconds between two loads; more where a load takes long
const share = 10;
const aged = 5000; // milliseconds after which the page is loaded again although nothing was recorded
let source = null;
let timer = 0;
let loaded = performance.now();
let gap = least;
let asked = null;

function load() {
  if (asked) return;
  const began = performance.now();
  const request = asked = new XMLHttpRequest(); // it makes a document without a sink that Trusted Types forbid
  request.open("GET", location.href);
  request.responseType = "document";
  request.timeout = 10000;
  request.onload = () => {
    asked = null;
    const fresh = request.response?.getElementById("main");
    if (request.response?.getElementById("login")) return end(); // it is the page to log in
    if (request.status !== 200 || fresh?.dataset.stream === undefined) {
      lost();
      later(share * least);
      return;
    }
    renew(request.response);
    alive();
    loaded = performance.now();
    gap = Math.max(least, share * (loaded - began));
    listen();
  };
  request.onerror = request.ontimeout = () => {
    asked = null;
    lost();
    later(2 * least);
  };
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

function end() {
  stop();
  clearTimeout(timer);
  ended();
}

const soon = () => later(Math.max(0, loaded + gap - performance.now()));

function listen() {
  if (source || document.hidden || main.dataset.stream === undefined) return; // it is played, in the past
  source = new EventSource(new URL(main.dataset.stream, location.origin));
  const moved = () => {
    stop();
    soon();
  };
  for (const kind of [...main.dataset.kinds.trim().split(" "), "reset"]) source.addEventListener(kind, moved);
  for (const kind of ["hello", "beat"]) {
    source.addEventListener(kind, () => {
      if (isStale()) return load();
      alive();
      if (!timer && performance.now() - loaded > Math.max(aged, gap)) load();
    });
  }
  source.addEventListener("bye", (event) => {
    if (JSON.parse(event.data).reason.includes("credential")) return end();
    stop();
    lost();
    later(2 * least);
  });
  source.onerror = () => {
    lost();
    if (source?.readyState !== EventSource.CLOSED) return;
    stop();
    later(2 * least);
  };
}

if (main.dataset.stream !== undefined) {
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) {
      wake();
      return listen();
    }
    rest();
    stop();
    clearTimeout(timer);
    timer = 0;
  });
  document.addEventListener("again", load);
  wake();
  listen();
}
