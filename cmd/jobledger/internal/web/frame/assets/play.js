// Plays what was recorded: the moment of the page moves on at 1, 10 or 100 times the speed of the recording. Time in
// which nothing was recorded for more than 2 s of playing is skipped, and the label says how long it was. The content
// of the page follows once a second where it is cheap, and is loaded when playing stops.
import {renew} from "./change.js";
import {stamp} from "./clock.js";
import {lasts} from "./lanes-axis.js";

const speeds = [1, 10, 100];
const kept = "jobledger-play"; // the speed that was chosen last, for the key
const refocus = "jobledger-play-focus"; // the button that had the focus as playing stopped
const longest = 2000; // milliseconds of playing without an event
const pause = 400; // milliseconds for which the event after skipped time is waited for
const shown = 2000; // milliseconds for which the label says what was skipped
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const stepOf = () => calm.matches ? 1000 : 200; // milliseconds between two moves of the moment
const least = 1000, share = 10; // between two loads of the content: a second, more where a load takes long

// player adds the buttons to moment, the bar of moments. It moves slider and writes label; at() is the address of the page at a
// position, and events() asks the API for events. What it returns plays at the speed that was chosen last.
export function player({moment, slider, label, tail, at, events}) {
  let now = null; // what is played: {pos, clock, speed, skipped}
  let load = null, due = 0;
  const group = document.createElement("div");
  group.className = "play noprint";
  group.dataset.own = "";
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", "Play what was recorded");
  const buttons = speeds.map((speed) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = `▶ ${speed}×`;
    button.setAttribute("aria-label", `Play ${speed}×`);
    button.setAttribute("aria-pressed", "false");
    button.title = `${speed} s recorded in 1 s; quiet time is skipped (key .: the last speed)`;
    button.addEventListener("click", () => now?.speed === speed ? stop() : play(speed));
    return button;
  });
  group.append(...buttons);
  label.before(group);

  function press() {
    buttons.forEach((button, i) => {
      const on = now?.speed === speeds[i];
      button.setAttribute("aria-pressed", String(on));
      button.textContent = `${on ? "◼" : "▶"} ${speeds[i]}×`;
    });
  }

  // tell shows the moment that is played.
  function tell(me) {
    slider.value = me.pos;
    moment.querySelectorAll(".marks .here").forEach((line) => {
      for (const end of ["x1", "x2"]) line.setAttribute(end, Math.trunc(1000 * me.pos / tail));
    });
    const skipped = me.skipped && performance.now() - me.skipped.since < shown;
    label.textContent = `Playing ${me.speed}×: pos ${me.pos} of ${tail}, ${stamp(me.clock)}` +
      (skipped ? `, after ${lasts(me.skipped.of)} in which nothing was recorded` : "") +
      (me.missing ? ", when the page had nothing to show" : "");
  }

  // follow loads the content of the page. A picture of lanes is too dear for that.
  function follow(me) {
    if (load || performance.now() < due || me.seen === me.pos || document.querySelector("canvas[data-lanes]")) return;
    const began = performance.now(), address = at(me.pos);
    me.seen = me.pos;
    load = new XMLHttpRequest(); // it makes a document without a sink that Trusted Types forbid
    load.open("GET", address);
    load.responseType = "document";
    load.onload = () => {
      const fresh = load.response;
      load = null;
      due = began + Math.max(least, share * (performance.now() - began));
      if (now !== me) return;
      me.missing = !fresh?.getElementById("moment"); // such as of a job that was not there yet
      if (me.missing) return;
      history.replaceState(null, "", address);
      renew(fresh);
    };
    load.onerror = () => { load = null; };
    load.send();
  }

  // on moves the moment from me.clock by milliseconds of playing, and returns whether there is more.
  async function on(me, milliseconds) {
    me.clock += milliseconds * me.speed;
    if (!me.next || Date.parse(me.next.at) <= me.clock) {
      if (me.clock < me.end) {
        const [next] = await events(`after=${me.pos}&limit=1&from=${new Date(me.clock).toISOString()}`);
        me.next = next;
      }
      if (me.clock >= me.end || !me.next) {
        me.pos = tail;
        return false;
      }
      me.pos = Math.max(me.pos, me.next.pos - 1);
    }
    const quiet = Date.parse(me.next.at) - me.clock;
    if (quiet > longest * me.speed) {
      me.clock += quiet - pause * me.speed;
      me.skipped = {of: quiet - pause * me.speed, since: performance.now()};
    }
    return true;
  }

  async function play(speed) {
    if (now) {
      now.speed = speed;
      press();
      keep(speed);
      return;
    }
    const me = now = {pos: Number(slider.value), speed, clock: 0};
    document.documentElement.dataset.playing = "";
    press();
    keep(speed);
    if (me.pos >= tail) me.pos = 1;
    try {
      const [[here], [last]] = await Promise.all([events(`after=${me.pos - 1}&limit=1`),
        events(`after=${tail - 1}&limit=1`)]);
      me.clock = Date.parse(here.at);
      me.end = Date.parse(last.at);
      let more = true, before = performance.now();
      while (now === me) {
        tell(me);
        follow(me);
        if (!more) return stop();
        await new Promise((done) => setTimeout(done, stepOf()));
        if (now !== me) return;
        const passed = Math.min(performance.now() - before, 2 * stepOf());
        before = performance.now();
        more = await on(me, passed);
      }
    } catch {
      if (now === me) stop(); // the page that is loaded says what is wrong
    }
  }

  // halt stops playing and leaves the page as it is.
  function halt() {
    const me = now;
    now = null;
    load?.abort();
    load = null;
    delete document.documentElement.dataset.playing;
    press();
    return me;
  }

  // stop stops playing, and loads the page at the moment that is shown.
  function stop() {
    const focus = buttons.indexOf(document.activeElement);
    const me = halt();
    try { if (focus >= 0) sessionStorage.setItem(refocus, String(focus)); } catch { /* the focus is lost */ }
    location.replace(at(me.pos));
  }

  function keep(speed) {
    try { sessionStorage.setItem(kept, String(speed)); } catch { /* the key plays the fastest */ }
  }

  function chosen() {
    try { return Number(sessionStorage.getItem(kept)) || speeds.at(-1); } catch { return speeds.at(-1); }
  }

  try {
    buttons[sessionStorage.getItem(refocus) ?? -1]?.focus();
    sessionStorage.removeItem(refocus);
  } catch { /* nothing had the focus */ }

  // While it plays, a key stops it and does nothing else; keys that move the focus or the page do what they always do.
  const harmless = ["Tab", "Shift", "Enter", " ", "PageUp", "PageDown", "Home", "End", "ArrowUp", "ArrowDown"];
  document.addEventListener("keydown", (event) => {
    if (!now || event.ctrlKey || event.metaKey || event.altKey || harmless.includes(event.key)) return;
    const field = event.target.closest("input, select, textarea"), slides = event.target === slider;
    if (field && !(event.key === "Escape" || slides && event.key === ".")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    stop();
  }, {capture: true});
  slider.addEventListener("input", () => { if (now) halt(); });
  slider.addEventListener("pointerdown", () => {
    if (!now) return;
    halt();
    slider.addEventListener("pointerup", () => location.replace(at(Number(slider.value))), {once: true});
  });
  document.addEventListener("visibilitychange", () => { if (now && document.hidden) stop(); });
  addEventListener("pagehide", () => { if (now) halt(); });
  return () => play(chosen());
}
