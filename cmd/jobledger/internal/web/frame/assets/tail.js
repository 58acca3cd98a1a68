// Adds events to the table as they are recorded. There is a stream only while the page is visible: browsers have
// few connections for each server.
import {alive, ended, lost, rest, wake} from "./sign.js";

const prefix = document.documentElement.dataset.prefix ?? "";
const table = document.getElementById("events");
const status = document.getElementById("follow");
const button = document.getElementById("pause");
const most = 500;
let after = table.dataset.after;
let source = null;
let held = []; // while it is paused: the last events that came
let waiting = 0; // and how many there were
let paused = false;
let said = 0;
let saying = 0;

function cell(row, text, className, href) {
  const td = row.insertCell();
  if (className) td.className = className;
  if (!text) return;
  let target = td;
  if (href) {
    target = document.createElement("a");
    target.href = href;
    td.append(target);
  }
  target.append(text);
}

function add(e) {
  const row = table.insertRow();
  row.id = "e" + e.Pos;
  cell(row, String(e.Pos), "number", prefix + "/events/" + e.Pos);
  const time = document.createElement("time");
  time.dateTime = time.title = e.UTC;
  time.append(e.At);
  cell(row, time, "", prefix + "/?at=pos:" + e.Pos);
  row.lastElementChild.firstElementChild.title = "The whole ledger then";
  cell(row, e.Kind);
  cell(row, "");
  if (e.State) {
    const state = document.createElement("span");
    state.className = "state " + e.State;
    state.append(e.State);
    row.lastElementChild.append(state);
  }
  cell(row, e.Job, "", prefix + "/jobs/" + encodeURIComponent(e.Job));
  cell(row, e.By);
  cell(row, e.What, "wide");
  while (table.rows.length > most) table.deleteRow(0);
}

// say shows the status, at most once a second: it is read aloud.
function say(text) {
  clearTimeout(saying);
  const wait = Math.max(0, said + 1000 - performance.now());
  saying = setTimeout(() => {
    said = performance.now();
    status.textContent = text;
  }, wait);
}

function take(message) {
  after = message.lastEventId || after;
  alive();
  const e = JSON.parse(message.data);
  if (!paused) {
    add(e);
    say("Following; the last event is pos " + e.Pos + ".");
    return;
  }
  held.push(e);
  waiting++;
  if (held.length > most) held.shift();
  showPaused();
}

function showPaused() {
  button.textContent = waiting ? `Go on, ${waiting} new` : "Go on";
  say(`Paused, ${waiting} new` + (waiting > most ? `; the last ${most} are kept.` : "."));
}

function pause() {
  if (paused) return;
  paused = true;
  showPaused();
}

function goOn() {
  paused = false;
  if (waiting > held.length) while (table.rows.length) table.deleteRow(0); // some between them are not there
  for (const e of held) add(e);
  held = [];
  waiting = 0;
  button.textContent = "Pause";
  for (const row of table.querySelectorAll(".frozen")) row.classList.remove("frozen");
  say("Following.");
}

function open() {
  if (source) return;
  const address = new URL(table.dataset.stream, location.origin);
  address.searchParams.set("after", after);
  source = new EventSource(address);
  source.addEventListener("hello", () => {
    alive();
    if (paused) showPaused(); else say("Following.");
  });
  source.addEventListener("beat", alive);
  source.addEventListener("reset", () => location.reload());
  source.addEventListener("bye", (event) => {
    if (JSON.parse(event.data).reason.includes("credential")) {
      close();
      ended();
    } else {
      lost();
    }
    say("The server ended the stream.");
  });
  source.onerror = () => {
    lost();
    say(source.readyState === EventSource.CLOSED ? "Not following: the server refuses it. Reload the page."
      : "The connection is lost; trying again.");
  };
  for (const kind of table.dataset.kinds.split(" ")) source.addEventListener(kind, take);
}

function close() {
  if (source) source.close();
  source = null;
}

button.hidden = false;
document.getElementById("freezes").hidden = false;
button.addEventListener("click", () => paused ? goOn() : pause());
// A row that somebody clicks would move away: the table stays as it is, and marks the row. Links lead where they lead.
table.addEventListener("click", (event) => {
  const row = event.target.closest("tr");
  if (!row || event.target.closest("a")) return;
  for (const other of table.querySelectorAll(".frozen")) other.classList.remove("frozen");
  row.classList.add("frozen");
  pause();
});
document.addEventListener("visibilitychange", () => document.hidden ? close() : open());
if (!document.hidden) open();
