// The shapes of claims: how a claim ended is seen without its color. The legend of the page has the same as SVG.

// colorOf is the color of a part of the legend.
export const colorOf = (name) => getComputedStyle(document.querySelector(`.legend .${name} svg`)).color;

// strokes draws lines, each given by the places of its two ends.
export function strokes(c, ...points) {
  c.beginPath();
  for (let i = 0; i < points.length; i += 4) {
    c.moveTo(points[i], points[i + 1]);
    c.lineTo(points[i + 2], points[i + 3]);
  }
  c.stroke();
}

const narrow = 5; // pixels: what is narrower has a small shape

// shapes draw a claim at x, y, w wide and h high, in the color that is set. at has its sign of life and the end of
// its lease, as far as they are known, and the paper. They return the names of what they drew.
const shapes = {
  failed(c, x, y, w, h) { // a notch at its end
    if (w < narrow) {
      c.fillRect(x, y, w, h * .35);
      c.fillRect(x, y + h * .65, w, h * .35);
      return ["split"];
    }
    const deep = Math.min(4, w / 2);
    c.beginPath();
    c.moveTo(x, y);
    c.lineTo(x + w, y);
    c.lineTo(x + w - deep, y + h / 2);
    c.lineTo(x + w, y + h);
    c.lineTo(x, y + h);
    c.fill();
    return ["notch"];
  },
  released(c, x, y, w, h) { // open at its end
    c.globalAlpha = .18;
    c.fillRect(x, y, w, h);
    c.globalAlpha = 1;
    c.fillRect(x, y, Math.min(1.5, w), h);
    c.fillRect(x, y, w, 1.5);
    c.fillRect(x, y + h - 1.5, w, 1.5);
    return ["gap"];
  },
  cancelled(c, x, y, w, h) { // thin, up to a wall
    c.fillRect(x, y + h * .35, w, h * .3);
    c.fillRect(x + Math.max(w - 2, 0), y - 1, Math.min(2, w), h + 2);
    return ["wall"];
  },
  reclaimed(c, x, y, w, h, at) { // solid, hollow from the last sign of life on, a tick, a cross
    const sign = Math.min(Math.max(at.sign ?? x, x), x + w), end = x + w, drawn = ["hollow", "cross"];
    c.fillRect(x, y, Math.max(sign - x, 2), h);
    c.strokeRect(sign + .5, y + .5, Math.max(end - sign - 1, 1), h - 1);
    if (at.lease >= x && at.lease <= end) {
      c.fillRect(at.lease - 1, y - 2, 2, h + 4);
      drawn.push("tick");
    }
    c.lineWidth = 1.6;
    strokes(c, end - 3, y, end + 3, y + h, end + 3, y, end - 3, y + h);
    c.lineWidth = 1;
    return drawn;
  },
  open(c, x, y, w, h, at) { // a soft end
    const soft = c.createLinearGradient(Math.max(x + w - 24, x), 0, x + w, 0);
    soft.addColorStop(0, at.color);
    soft.addColorStop(1, at.paper);
    c.fillStyle = soft;
    c.fillRect(x, y, w, h);
    c.fillStyle = at.color;
    return ["soft"];
  },
};

const solid = ["solid"];

// shape draws a claim by its outcome, and returns the names of what it drew. The colors of fills and lines are set.
export function shape(c, how, x, y, w, h, at) {
  const special = shapes[how];
  if (special) return special(c, x, y, w, h, at);
  c.fillRect(x, y, w, h);
  return solid;
}

// cross draws the sign of a write that came too late.
export function cross(c, x, y) {
  c.lineWidth = 3;
  strokes(c, x - 5, y - 5, x + 5, y + 5, x + 5, y - 5, x - 5, y + 5);
  c.lineWidth = 1;
}

// hatch draws oblique lines into a box, between left and right.
export function hatch(c, x, y, w, h, left, right) {
  const lines = [];
  c.save();
  c.beginPath();
  c.rect(x, y, w, h);
  c.clip();
  c.globalAlpha = .45;
  for (let s = Math.max(x, left) - h; s < Math.min(x + w, right); s += 7) lines.push(s, y + h, s + h, y);
  strokes(c, ...lines);
  c.restore();
}

// sample draws the shape of a part of the legend into a box, and returns whether there is one.
export function sample(c, name, x, y, w, h, paper) {
  c.fillStyle = c.strokeStyle = colorOf(name);
  switch (name) {
    case "refused":
      c.setLineDash([2, 3]);
      strokes(c, x, y + h / 2, x + w - 6, y + h / 2);
      c.setLineDash([]);
      cross(c, x + w - 6, y + h / 2);
      break;
    case "silent":
      hatch(c, x, y, w, h, x, x + w);
      break;
    case "paused":
      c.globalAlpha = .35;
      c.fillRect(x, y, w, h);
      c.globalAlpha = 1;
      break;
    default:
      shape(c, name, x, y, w, h, {sign: x + w * .3, lease: x + w * .6, color: c.fillStyle, paper});
  }
}
