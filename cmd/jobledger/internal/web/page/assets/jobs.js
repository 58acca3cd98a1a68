// The page of jobs: completes the last term of the search. The list of the field has all that is known; a browser
// compares it with the whole field, so each entry gets what stands before the term.
const field = document.querySelector("form.filter input[name=find]");
const known = [...field.list.options].map((option) => option.value);

// termAt is where the last term of a search begins: after the last space that is not in quotation marks.
function termAt(text) {
  let begin = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "\"") quoted = !quoted;
    if (text[i] === " " && !quoted) begin = i + 1;
  }
  return text[begin] === "-" ? begin + 1 : begin;
}

function offer() {
  const text = field.value;
  const begin = termAt(text);
  const term = text.slice(begin).toLowerCase();
  field.list.replaceChildren(...known.filter((name) => name.toLowerCase().startsWith(term)).map((name) => {
    const option = document.createElement("option");
    option.value = text.slice(0, begin) + name;
    return option;
  }));
}

field.addEventListener("input", offer);
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
