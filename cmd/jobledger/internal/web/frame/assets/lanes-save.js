// Saves the picture of the lanes as a file, and keeps the links below it at the window that it shows.
import {sample} from "./lanes-shapes.js";

const button = document.getElementById("png");
const links = document.querySelectorAll("a[data-window]");
const table = document.querySelector("a[data-open]");

// follow sets the window of the links.
export function follow(from, to) {
  for (const link of links) {
    const address = new URL(link.href);
    address.searchParams.set("from", from);
    address.searchParams.set("to", to);
    link.href = address;
  }
}

// legendOf puts the legend of the page at x and y of a drawing, up to width, and returns where it ends. Without a
// color for its words it only measures.
function legendOf(c, x, y, width, paint, paper) {
  const left = x, wide = 26;
  for (const item of document.querySelectorAll(".legend li")) {
    const text = item.textContent.trim(), size = wide + 6 + c.measureText(text).width;
    if (x > left && x + size > width) [x, y] = [left, y + 17];
    if (paint) {
      sample(c, item.className, x, y - 5, wide, 9, paper);
      c.fillStyle = paint;
      c.fillText(text, x + wide + 6, y);
    }
    x += size + 18;
  }
  return y + 17;
}

// pictureOf returns a drawing of the canvas with a title above and the legend below it.
function pictureOf(canvas, title) {
  const style = getComputedStyle(document.body), ratio = canvas.width / canvas.clientWidth;
  const width = canvas.clientWidth, height = canvas.clientHeight, above = 30, margin = 12;
  const whole = document.createElement("canvas"), c = whole.getContext("2d");
  const font = "12px " + style.fontFamily;
  c.font = font;
  const below = legendOf(c, margin, 0, width - margin, "");
  whole.width = canvas.width;
  whole.height = Math.round((above + height + below + 10) * ratio);
  c.fillStyle = style.backgroundColor;
  c.fillRect(0, 0, whole.width, whole.height);
  c.scale(ratio, ratio);
  c.drawImage(canvas, 0, above, width, height);
  c.textBaseline = "middle";
  c.fillStyle = style.color;
  c.font = "600 " + font;
  c.fillText(title, margin, above / 2);
  c.font = font;
  legendOf(c, margin, above + height + 14, width - margin, style.color, style.backgroundColor);
  return whole;
}

// offer shows the button that saves what is drawn, with the title and the name of a file that describe returns.
export function offer(canvas, describe) {
  if (!button || !button.hidden) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    const {title, file} = describe();
    pictureOf(canvas, button.dataset.ledger + " · " + title).toBlob((blob) => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = file;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    }, "image/png");
  });
}

if (table) {
  table.addEventListener("click", () => { document.querySelector(table.hash).open = true; });
}
