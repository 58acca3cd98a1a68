// Keeps what is around the picture of the lanes at what it shows: the parts of the page about its window, among them
// the table of claims, and what is read aloud.
const wait = 400; // milliseconds without a new window, before the page of it is asked for
const quiet = 120; // milliseconds without new words, before they are read aloud
let timer = 0, request = null;

const parts = () => [...document.querySelectorAll("[data-view]")];

function busy(is) {
  for (const part of parts()) {
    if (is) part.setAttribute("aria-busy", "true");
    else part.removeAttribute("aria-busy");
  }
}

// take puts what fresh has of the window in the place of what is there. What has the focus stays.
function take(fresh) {
  for (const part of parts()) {
    const next = fresh.querySelector(`[data-view="${part.dataset.view}"]`);
    if (!next || part.contains(document.activeElement)) continue;
    part.replaceChildren(...[...next.childNodes].map((node) => document.importNode(node, true)));
  }
  busy(false);
}

function load() {
  request = new XMLHttpRequest(); // it makes a document without a sink that Trusted Types forbid
  request.open("GET", location.href);
  request.responseType = "document";
  request.onload = () => {
    if (request.status === 200 && request.response) take(request.response);
    else busy(false);
  };
  request.onerror = () => busy(false);
  request.send();
}

// followPage asks for the page at its address, once that stays the same for a while.
export function followPage() {
  clearTimeout(timer);
  request?.abort();
  busy(true);
  timer = setTimeout(load, wait);
}

// What said shows is read aloud once it stays the same for a moment: not each claim that somebody only passes.
const said = document.getElementById("said"), spoken = document.getElementById("spoken");
let speak = 0;
new MutationObserver(() => {
  clearTimeout(speak);
  speak = setTimeout(() => { spoken.textContent = said.textContent; }, quiet);
}).observe(said, {childList: true, characterData: true, subtree: true});
