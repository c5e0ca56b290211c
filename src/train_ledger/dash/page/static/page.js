// Keeps an open page current: takes over the parts that changed, counts ages, copies commands.
"use strict";

const STALE_AFTER_S = 15;
const main = document.querySelector("main");
const link = document.getElementById("link");
let stateT = Number(main.dataset.t);
let heardAt = performance.now();
let movedAt = performance.now();
let connected = true;

function ago(seconds) {
  if (seconds < 0.95) return "now";
  if (seconds < 9.95) return `${seconds.toFixed(1)} s ago`;
  if (seconds < 100) return `${Math.round(seconds)} s ago`;
  const minutes = seconds / 60;
  if (minutes < 100) return `${Math.floor(minutes)} min ago`;
  return `${Math.floor(minutes / 60)} h ${Math.floor(minutes % 60)} min ago`;
}

function countAges() {
  const now = stateT + (performance.now() - movedAt) / 1000;
  for (const time of document.querySelectorAll("time[data-t]")) {
    const text = ago(Math.max(0, now - Number(time.dataset.t)));
    if (time.textContent !== text) time.textContent = text;
  }
  const silence = (performance.now() - heardAt) / 1000;
  const standing = (performance.now() - movedAt) / 1000;
  let said = "live";
  if (!connected && silence > 3) said = `no connection for ${Math.round(silence)} s – what you see is old`;
  else if (standing > STALE_AFTER_S) said = `the keeper has not looked for ${Math.round(standing)} s`;
  if (link.textContent !== said) link.textContent = said;
  document.body.classList.toggle("stale", said !== "live");
}

const FOCUSABLE = "a[href], button, summary, [tabindex]";

// What is under somebody's keyboard, and what somebody opened or closed, stays so, though the part around it is
// another now.
function replaceHtml(part, html) {
  const opened = new Map(Array.from(part.querySelectorAll("details"), (box) => [box.dataset.key, box.open]));
  const scrolled = Array.from(part.querySelectorAll(".scroll"), (box) => [box.scrollLeft, box.scrollTop]);
  const focused = Array.from(part.querySelectorAll(FOCUSABLE)).indexOf(document.activeElement);
  part.innerHTML = html;
  for (const box of part.querySelectorAll("details")) if (opened.has(box.dataset.key)) box.open = opened.get(box.dataset.key);
  part.querySelectorAll(".scroll").forEach((box, at) => {
    if (scrolled[at]) [box.scrollLeft, box.scrollTop] = scrolled[at];
  });
  if (focused >= 0) part.querySelectorAll(FOCUSABLE)[focused]?.focus({ preventScroll: true });
}

function take(update) {
  connected = true;
  heardAt = performance.now();
  if (update.t !== stateT) {
    stateT = update.t;
    movedAt = heardAt;
  }
  for (const [name, html] of Object.entries(update.parts)) {
    if (name === "title") {
      const text = new DOMParser().parseFromString(html, "text/html").documentElement.textContent;
      document.title = text;
      continue;
    }
    const part = document.getElementById(name);
    if (part !== null) replaceHtml(part, html);
  }
  countAges();
}

async function copy(button) {
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "copied";
  } catch {
    const range = document.createRange();
    range.selectNodeContents(button.parentElement.querySelector("code"));
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    button.textContent = "selected";
  }
  setTimeout(() => { button.textContent = "copy"; }, 2000);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-copy]");
  if (button !== null) copy(button);
});

const events = new EventSource("events");
events.onmessage = (event) => take(JSON.parse(event.data));
events.onerror = () => { connected = false; };
setInterval(countAges, 1000);
countAges();
