// Changes a page to what a fresh copy of it says. Elements stay, so the focus, scroll positions and open disclosures do; so
// does a form that somebody fills in.

// own are the elements that scripts added.
const own = (node) => node.nodeType === Node.ELEMENT_NODE && (node.dataset.own !== undefined || node.matches(".slider"));

// keyOf tells the children of an element apart; of two with the same key the order does.
function keyOf(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return "text";
  if (node.id) return [node.tagName, node.id].join("#"); // its class may differ, as that of the bar does in the past
  const name = /^H[1-6]$/.test(node.tagName) ? node.textContent : node.matches(".scroll") ? node.getAttribute("aria-label") : "";
  return [node.tagName, node.getAttribute("class"), name].join(" ");
}

// touched reports whether somebody is at a form, or has changed a field.
function touched(form) {
  return form.contains(document.activeElement) || [...form.elements].some((e) =>
    e.defaultValue !== undefined && e.value !== e.defaultValue || e.checked !== undefined && e.checked !== e.defaultChecked);
}

// playing reports whether the moment is played: what shows it belongs to the player until it stops.
const playing = () => document.documentElement.dataset.playing !== undefined;

// renew makes the page what fresh, another copy of it, says.
export function renew(fresh) {
  for (const id of ["pages", "strip", "moment", "main"]) {
    const old = document.getElementById(id), now = fresh.getElementById(id);
    if (old && now) change(old, now);
  }
  for (const name of ["class", "open"]) {
    const old = document.getElementById("asof"), now = fresh.getElementById("asof");
    if (old && now?.classList.contains("past")) old.setAttribute(name, now.getAttribute(name));
  }
  document.dispatchEvent(new Event("changed"));
}

// change makes old what fresh is.
export function change(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  if (old.matches("form") && touched(old) || old.matches("footer details")) return;
  if (old.matches("#when, .marks .here") && (playing() || document.activeElement?.matches(".slider"))) return;
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
