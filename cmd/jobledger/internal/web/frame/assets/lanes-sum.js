// The line below the picture: what is in it, in numbers.
const summary = document.getElementById("summary");
const words = {failed: "failed", reclaimed: "lost", released: "given back", cancelled: "cancelled",
  open: "not ended"};

const number = (n) => n.toLocaleString("en").replaceAll(",", "\u202f");

// sum writes the line. Its button calls fold, which shows the workers without claims, or where they are open hides them.
export function sum(data, open, fold) {
  const counts = {};
  data.how.forEach((how, i) => { counts[data.outcomes[how]] = (counts[data.outcomes[how]] ?? 0) + data.count[i]; });
  const parts = [`${number(data.claims)} ${data.claims === 1 ? "claim" : "claims"}`];
  if (data.joined) parts.push(`${number(data.joined)} joined (too short to see)`);
  const refused = data.marks.length;
  if (refused) parts.push(`${number(refused)} refused ${refused === 1 ? "write" : "writes"}`);
  for (const [how, word] of Object.entries(words)) {
    if (counts[how]) parts.push(`${number(counts[how])} ${word}`);
  }
  const had = document.activeElement?.id === "idle-rows", button = document.createElement("button");
  summary.replaceChildren(parts.join(" · "));
  summary.hidden = false;
  if (!data.idle.length) return;
  button.type = "button";
  button.id = "idle-rows";
  button.addEventListener("click", fold);
  summary.append(" · ", button);
  button.setAttribute("aria-expanded", String(open));
  button.append(`${data.idle.length} without claims ${open ? "▾" : "▸"}`);
  if (had) button.focus();
}
