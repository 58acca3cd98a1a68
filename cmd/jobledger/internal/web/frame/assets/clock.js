// The times that scripts show: all in the zone of the page, in the forms that the server gives them.
const zone = document.querySelector("header")?.dataset.zone ?? "UTC";
const fixed = /^([+-])(\d\d):(\d\d)$/.exec(zone); // a zone without a name is its offset
const format = fixed ? null : new Intl.DateTimeFormat("en-GB", {timeZone: zone, hourCycle: "h23", year: "numeric",
  month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit"});

// offsetOf is how far the zone is ahead of UTC at a time, in milliseconds.
export function offsetOf(time) {
  if (fixed) return (fixed[1] === "-" ? -1 : 1) * (Number(fixed[2]) * 60 + Number(fixed[3])) * 60000;
  const at = Object.fromEntries(format.formatToParts(time).map((part) => [part.type, Number(part.value)]));
  return Date.UTC(at.year, at.month - 1, at.day, at.hour, at.minute, at.second) - Math.floor(time / 1000) * 1000;
}

const local = (time) => new Date(time + offsetOf(time)).toISOString();
const two = (n) => String(n).padStart(2, "0");

// clock is the time of day.
export const clock = (time, seconds) => local(time).slice(11, seconds ? 19 : 16);

// day is the date.
export const day = (time) => local(time).slice(0, 10);

function offset(time) {
  const minutes = Math.round(offsetOf(time) / 60000), size = Math.abs(minutes);
  return `${minutes < 0 ? "-" : "+"}${two(Math.trunc(size / 60))}:${two(size % 60)}`;
}

// stamp is the date and the time of day, with the offset of the zone.
export const stamp = (time) => `${day(time)} ${clock(time, true)}${offset(time)}`;

// exact is the same to the millisecond, as a field has it.
export const exact = (time) => local(time).slice(0, -1) + offset(time);
