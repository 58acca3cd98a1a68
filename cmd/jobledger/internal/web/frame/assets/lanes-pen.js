// The canvas of the lanes, and what draws on it.
import {colorOf, strokes} from "./lanes-shapes.js";

export const canvas = document.querySelector("canvas[data-lanes]");
export const c = canvas.getContext("2d");
export const colors = {};
let font = "";

// readColors takes the colors from the page, which is light or dark.
export function readColors() {
  for (const item of document.querySelectorAll(".legend li")) colors[item.className] = colorOf(item.className);
  const style = getComputedStyle(document.body);
  colors.text = style.color;
  colors.paper = style.backgroundColor;
  colors.quiet = getComputedStyle(document.querySelector(".window")).color;
  colors.line = getComputedStyle(document.querySelector("header")).borderBottomColor;
  font = style.fontFamily;
}

// write sets the letters, which are bold or not.
export function write(bold) {
  c.font = (bold ? "600 " : "") + "11px " + font;
  c.textBaseline = "middle";
}

export const line = (...points) => strokes(c, ...points);

// fit is text, cut short where it is wider than so many pixels.
export function fit(text, width) {
  if (c.measureText(text).width <= width) return text;
  while (text.length > 1 && c.measureText(text + "…").width > width) text = text.slice(0, -1);
  return text + "…";
}

// name writes the name of a row to the left of the lanes.
export function name(text, y, left, color) {
  c.fillStyle = color;
  c.fillText(fit(text, left - 12), 2, y);
}
