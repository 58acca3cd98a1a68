// Keeps a page about now up to date: once something was recorded, it loads the page again and changes what differs.
// Elements stay, so the focus, scroll positions and open disclosures do; so does a form that somebody fills in.
// There is a stream only while the page is visible.
const main = document.getElementById("main");
const least = 1000; // milliseconds between two loads; more where a load takes long
const share = 10;
let source = null;
let timer = 0;
let loaded = performance.now();
let gap = least;

// own are the elements that scripts added.
const own = (node) => node.nodeType === Node.ELEMENT_NODE && (node.dataset.own !== undefined || node.matches(".slider"));

// keyOf tells the children of an element apart; of two with the same key the order does.
function keyOf(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return "text";
  const name = /^H[1-6]$/.test(node.tagName) ? node.textContent : node.matches(".scroll") ? node.getAttribute("aria-label") : "";
  return [node.tagName, node.id, node.getAttribute("class"), name].join(" ");
}

// touched reports whether somebody is at a form, or has changed a field.
function touched(form) {
  return form.contains(document.activeElement) || [...form.elements].some((e) =>
    e.defaultValue !== undefined && e.value !== e.defaultValue || e.checked !== undefined && e.checked !== e.defaultChecked);
}

// change makes old what fresh is.
function change(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  if (old.matches("form") && touched(old) || old.matches("footer details")) return;
  if (old.matches("#when") && document.activeElement?.matches(".slider")) return;
  for (const {name} of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !(name === "open" && old.matches("details"))) old.removeAttribute(name);
  }
  for (const {name, value} of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const rest = [...old.childNodes].filter((node) => !own(node));
  const last = [...old.childNodes].findLast((node) => !own(node))?.nextSibling ?? null;
  for (const child of fresh.childNodes) {
    const key = keyOf(child);
    const at = key === "text" ? 0 : rest.findIndex((node) => keyOf(node) === key);
    if (at < 0 || !rest[at] || keyOf(rest[at]) !== key) {
      old.insertBefore(document.importNode(child, true), rest[0] ?? last);
      continue;
    }
    for (const gone of rest.splice(0, at)) gone.remove();
    change(rest.shift(), child);
  }
  for (const gone of rest) gone.remove();
}

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
  if (source || document.hidden) return;
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
