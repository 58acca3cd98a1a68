// The page of jobs: completes the term of the search at the cursor. The list of the field has all that is known; a
// browser compares it with the whole field, so each entry gets what stands before and after the term.
const field = document.querySelector("form.filter input[name=find]");
const known = [...field.list.options].map((option) => option.value);

// termAt is where the last term of text begins: after the last space that is not in quotation marks.
function termAt(text) {
  let begin = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "\"") quoted = !quoted;
    if (text[i] === " " && !quoted) begin = i + 1;
  }
  return text[begin] === "-" ? begin + 1 : begin;
}

// endAt is where the term ends that goes on at begin.
function endAt(text, begin) {
  let quoted = text.slice(0, begin).split("\"").length % 2 === 0;
  for (let i = begin; i < text.length; i++) {
    if (text[i] === "\"") quoted = !quoted;
    if (text[i] === " " && !quoted) return i;
  }
  return text.length;
}

// offer fills the list for the term at the cursor. Browsers show an entry whose value or label has the whole text of
// the field: where the entry does not begin with that text, its label does.
function offer() {
  const text = field.value, cursor = field.selectionStart ?? text.length;
  const begin = termAt(text.slice(0, cursor)), end = endAt(text, cursor);
  const term = text.slice(begin, cursor).toLowerCase();
  const names = known.filter((name) => name.toLowerCase().startsWith(term));
  const state = [text, begin, end, term].join("\n");
  if (state === offered) return; // a list that stays the same stays open
  offered = state;
  field.list.replaceChildren(...names.map((name) => {
    const option = document.createElement("option");
    option.value = text.slice(0, begin) + name + text.slice(end);
    if (cursor < text.length) option.label = `${text} → ${name}`;
    return option;
  }));
}

let offered = null;
field.addEventListener("input", offer);
document.addEventListener("selectionchange", () => { if (document.activeElement === field) offer(); });
offer();

// Whoever ticks a job means those that are ticked. A button ticks all jobs of the page.
const form = document.getElementById("many");
if (form) {
  const boxes = [...document.querySelectorAll("input[name=job]")];
  const say = document.createElement("p");
  say.setAttribute("role", "status");
  say.className = "ticked";
  const all = document.createElement("button");
  all.type = "button";
  all.className = "noprint";
  const count = () => boxes.filter((box) => box.checked).length;
  const show = () => {
    const n = count();
    say.textContent = n ? `${n} of ${boxes.length} jobs of this page ticked` : "";
    all.textContent = n === boxes.length ? "Tick none" : "Tick all of this page";
    const which = form.querySelector(`input[name=which][value=${n ? "these" : "all"}]`);
    if (which) which.checked = true;
  };
  for (const box of boxes) {
    box.addEventListener("change", () => {
      document.getElementById("act").open = true;
      show();
    });
  }
  all.addEventListener("click", () => {
    const on = count() < boxes.length;
    for (const box of boxes) box.checked = on;
    show();
  });
  form.querySelector("fieldset").append(all, say);
  show();
}
