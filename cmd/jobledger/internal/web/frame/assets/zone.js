// Offers the zone of this browser.
const mine = document.getElementById("mine");
const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (mine && name) {
  mine.elements.tz.value = name;
  mine.querySelector("button").textContent = `This browser's: ${name}`;
  mine.hidden = false;
}
