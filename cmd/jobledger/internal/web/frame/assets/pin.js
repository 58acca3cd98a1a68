// Two moments are compared from any page: one is pinned, and while another is shown a link leads to what differs between
// them. The pin is for this tab.

const svg = "http://www.w3.org/2000/svg";

// pins adds a button that pins the moment of the page to moment, the bar of moments, before label; tail is its last
// position. Addresses begin with prefix.
export function pins({moment, label, tail, prefix}) {
  const kept = "jobledger-pin" + prefix;
  const pinned = () => {
    try { return Number(sessionStorage.getItem(kept)); } catch { return 0; }
  };
  const here = () => Number(moment.dataset.pos);
  const group = document.createElement("div"), button = document.createElement("button");
  const link = document.createElement("a"), line = document.createElementNS(svg, "line");
  group.className = "pins noprint";
  group.dataset.own = line.dataset.own = "";
  button.type = "button";
  line.setAttribute("class", "pin");
  line.setAttribute("y1", "0");
  line.setAttribute("y2", "22");
  group.append(link, button);
  label.before(group);

  function show() {
    const pin = pinned(), pos = here(), other = pin > 0 && pin <= tail && pin !== pos;
    button.textContent = pin === pos ? "Unpin" : "Pin";
    button.title = pin === pos ? "Compare no moment with this one" : "Compare other moments with this one";
    link.hidden = !other;
    link.textContent = `Compare with pos ${pin}`;
    link.href = `${prefix}/diff?from=pos:${Math.min(pin, pos)}&to=pos:${Math.max(pin, pos)}`;
    if (!other) return line.remove();
    for (const end of ["x1", "x2"]) line.setAttribute(end, Math.trunc(1000 * pin / tail));
    moment.querySelector(".marks").append(line);
  }

  button.addEventListener("click", () => {
    try {
      if (pinned() === here()) sessionStorage.removeItem(kept); else sessionStorage.setItem(kept, String(here()));
    } catch { /* nothing is pinned */ }
    show();
  });
  document.addEventListener("changed", show);
  show();
}
