// Adds events to the table as they are recorded. There is a stream only while the page is visible: browsers have
// few connections for each server.
const prefix = document.documentElement.dataset.prefix ?? "";
const table = document.getElementById("events");
const status = document.getElementById("follow");
const button = document.getElementById("pause");
const most = 500;
let after = table.dataset.after;
let source = null;
let held = [];
let paused = false;

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
  cell(row, String(e.Pos), "number", prefix + "/?at=pos:" + e.Pos);
  cell(row, e.At);
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

function say(text) {
  status.textContent = text;
}

function take(message) {
  after = message.lastEventId || after;
  const e = JSON.parse(message.data);
  if (!paused) {
    add(e);
    say("Following; the last event is pos " + e.Pos + ".");
    return;
  }
  held.push(e);
  if (held.length > most) held.shift();
  say(held.length + (held.length < most ? "" : " or more") + " new events wait.");
}

function open() {
  if (source) return;
  const address = new URL(table.dataset.stream, location.origin);
  address.searchParams.set("after", after);
  source = new EventSource(address);
  source.addEventListener("hello", () => say("Following."));
  source.addEventListener("reset", () => location.reload());
  source.addEventListener("bye", () => say("The server ended the stream."));
  source.onerror = () => {
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
button.addEventListener("click", () => {
  paused = !paused;
  button.textContent = paused ? "Go on" : "Pause";
  if (paused) return;
  for (const e of held) add(e);
  held = [];
});
document.addEventListener("visibilitychange", () => document.hidden ? close() : open());
if (!document.hidden) open();
