// A crosshair over the charts of a queue. A pointer over one of them, or a slider, chooses a step; each chart then has
// its numbers there, which are those of its table.
const charts = document.querySelector(".charts");
const left = 46; // of a chart, whose sizes are those of its view box
const width = charts.querySelector("svg").viewBox.baseVal.width;
const figures = () => [...charts.querySelectorAll("figure.chart")];
const rowsOf = (figure) => [...figure.querySelectorAll("tbody tr")];
const last = () => rowsOf(figures()[0]).length - 1;

// textOf is what a chart has at a step, without the time.
function textOf(figure, step) {
  const cells = [...rowsOf(figure)[step].cells].map((cell) => cell.textContent);
  const unit = figure.dataset.unit;
  return [...figure.querySelectorAll(".key")].map((key, i) =>
    key.textContent + " " + (cells[i + 1] === "-" ? "unknown" : cells[i + 1] + unit)).join(", ");
}

function show(step) {
  const time = rowsOf(figures()[0])[step].cells[0].textContent;
  const said = [];
  for (const figure of figures()) {
    let text = figure.querySelector(".at");
    if (!text) {
      text = document.createElement("span");
      text.className = "at";
      text.dataset.own = "";
      figure.querySelector("figcaption").append(text);
    }
    text.textContent = time + ": " + textOf(figure, step);
    said.push(figure.querySelector("figcaption").firstChild.textContent.trim() + ": " + textOf(figure, step));
    const svg = figure.querySelector("svg");
    let line = svg.querySelector(".cross");
    if (!line) {
      line = document.createElementNS("http://www.w3.org/2000/svg", "line");
      line.setAttribute("class", "cross");
      line.setAttribute("y1", "4");
      line.setAttribute("y2", "130");
      line.dataset.own = "";
      svg.append(line);
    }
    const x = left + (width - left) * step / Math.max(last(), 1);
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
  }
  slider.value = step;
  slider.setAttribute("aria-valuetext", time + ". " + said.join(". "));
}

const label = document.createElement("label");
label.dataset.own = "";
label.className = "reading noprint";
label.append("Time in the charts ");
const slider = document.createElement("input");
slider.type = "range";
slider.min = 0;
slider.max = last();
slider.value = last();
slider.setAttribute("aria-valuetext", "not chosen");
label.append(slider);
charts.before(label);
slider.addEventListener("input", () => show(Number(slider.value)));
charts.addEventListener("pointermove", (event) => {
  const svg = event.target.closest("svg");
  if (!svg) return;
  const box = svg.getBoundingClientRect();
  const x = (event.clientX - box.left) / box.width * width;
  show(Math.min(last(), Math.max(0, Math.round((x - left) / (width - left) * last()))));
});
document.addEventListener("changed", () => {
  if (charts.querySelector(".cross")) show(Math.min(Number(slider.value), last()));
});
