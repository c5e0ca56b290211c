// Draws the run's curves and strips, as thinned out by the keeper, and asks for more where one looks closer.
"use strict";

const CURVE_GROUPS = [
  { title: "loss", fields: ["loss"] },
  { title: "gradient norm", fields: ["grad_norm"], log: true },
  { title: "learning rate", fields: ["lr"] },
  { title: "attention logit, largest", fields: ["max_attn_logit"] },
  { title: "loss scale", fields: ["loss_scale"], log: true },
  { title: "a step takes", fields: ["step_time_s"] },
  { title: "own work, waiting in collectives, waiting for data", fields: ["compute_s", "comm_wait_s", "data_wait_s"] },
  { title: "checkpoints hold the step up", fields: ["ckpt_s"] },
  { title: "tokens per second and GPU", fields: ["tps"] },
  { title: "MFU", fields: ["mfu"] },
  { title: "GPU memory, reserved and split", fields: ["mem_reserved_peak", "mem_inactive_split"] },
  { title: "host memory", fields: ["rss_bytes"] },
];
const STRIP_TITLES = {
  compute_s: "own work of each rank",
  comm_wait_s: "waiting in collectives, by rank (the rank that drags waits least)",
  data_wait_s: "waiting for data, by rank",
  mem_reserved_peak: "GPU memory reserved, by rank",
  DCGM_FI_DEV_SM_CLOCK: "SM clock of each GPU (MHz)",
  DCGM_FI_DEV_GPU_TEMP: "temperature of each GPU (°C)",
  DCGM_FI_DEV_POWER_USAGE: "power of each GPU (W)",
};
const MARKS = {
  run_start: "start", run_end: "end", ckpt_failed: "save failed", exception: "exception", xid: "XID",
  watchdog_timeout: "watchdog", oom: "out of memory", killed: "killed", nccl_error: "NCCL error",
};
const [SOONEST_MS, LATEST_MS] = [5000, 60_000];
const CURVE_POINTS = 700;
const [ROW_PX, LOWEST_STRIP_PX, HIGHEST_STRIP_PX] = [14, 28, 144];
const room = document.getElementById("curves");
const strips = document.getElementById("strips");
const read = document.getElementById("read");
const drawn = new Map();
// A figure far from what is seen is drawn once and kept current only where somebody scrolls to it: drawing is what
// the page's own thread spends its time on.
const sight = new IntersectionObserver((changes) => {
  for (const change of changes) {
    for (const entry of drawn.values()) if (entry.box === change.target) entry.seen = change.isIntersecting;
  }
  if (changes.some((change) => change.isIntersecting)) refresh();
}, { rootMargin: "2000px" });
let range = null;
let plotly = null;
let asking = false;
let askAgain = false;
let due = 0;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function loadPlotly() {
  if (plotly === null) {
    plotly = new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = "static/plotly.min.js";
      script.onload = () => resolve(window.Plotly);
      script.onerror = () => reject(new Error("plotly.js did not come"));
      document.head.append(script);
    });
  }
  return plotly;
}

function traces(group, answer) {
  const made = [];
  const palette = [colour("--accent"), colour("--unsure"), colour("--fine")];
  const newest = Math.max(...answer.attempts.map((it) => it.attempt));
  group.fields.forEach((field, place) => {
    for (const part of answer.attempts) {
      const curve = part.curves[field];
      if (curve === undefined) continue;
      const own = { x: part.steps, line: { color: palette[place], width: 0 }, hoverinfo: "skip", showlegend: false,
        mode: "lines", connectgaps: false, opacity: part.attempt === newest ? 1 : 0.45 };
      const name = group.fields.length > 1 ? field : `attempt ${part.attempt}`;
      const said = curve.worst.map((rank, at) => (rank === null ? "" :
        `${curve.high[at]} on rank ${rank}${curve.odd[at] ? `, ${curve.odd[at]} not finite` : ""}`));
      made.push({ ...own, y: curve.low });
      made.push({ ...own, y: curve.high, fill: "tonexty", fillcolor: `${palette[place]}33` });
      made.push({ ...own, y: curve.mean, name, customdata: said, hoverinfo: "text",
        line: { color: palette[place], width: 1.4, dash: part.attempt === newest ? "solid" : "dot" },
        hovertemplate: `step %{x}: %{y}<br>highest %{customdata}<br>attempt ${part.attempt}<extra>${name}</extra>`,
        showlegend: group.fields.length > 1 && part.attempt === newest });
    }
  });
  return made;
}

function shapes(answer) {
  const lines = answer.marks.filter((it) => it.step !== undefined && MARKS[it.name] && it.name !== "run_start")
    .map((it) => ({ type: "line", x0: it.step, x1: it.step, yref: "paper", y0: 0, y1: 1,
      line: { color: colour("--trouble"), width: 1, dash: "dot" } }));
  const redone = answer.attempts.filter((it) => it.redone_to !== null && it.steps.length > 0)
    .map((it) => ({ type: "rect", x0: it.steps[0], x1: it.redone_to, yref: "paper", y0: 0, y1: 1,
      fillcolor: colour("--unsure"), opacity: 0.12, line: { width: 0 }, layer: "below" }));
  return lines.concat(redone);
}

function layout(group, answer) {
  const unit = answer.fields[group.fields[0]].unit;
  const several = group.fields.length > 1;
  return {
    height: several ? 216 : 190, margin: { l: 56, r: 8, t: several ? 32 : 6, b: 28 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colour("--dim"), size: 11, family: "system-ui, sans-serif" }, dragmode: "zoom", hovermode: "closest",
    xaxis: { gridcolor: colour("--rule"), zeroline: false, range: range ?? undefined, autorange: range === null,
      tickformat: ",d" },
    yaxis: { gridcolor: colour("--rule"), zeroline: false, type: group.log ? "log" : "linear", nticks: group.log ? 3 : 0, fixedrange: true,
      title: { text: unit, font: { size: 10 }, standoff: 4 }, automargin: true, exponentformat: unit === "bytes" ? "SI" : "e",
      ...flatRange(group, answer) },
    legend: { orientation: "h", y: 1, yanchor: "bottom", font: { size: 10 } }, shapes: shapes(answer),
    uirevision: JSON.stringify(range),
  };
}

// What never changes is drawn in the middle of its own size: left alone, 0.0003 is drawn as 0 between -1 and 1.
function flatRange(group, answer) {
  let low = Infinity;
  let high = -Infinity;
  for (const part of answer.attempts) {
    for (const field of group.fields) {
      const curve = part.curves[field];
      if (curve === undefined) continue;
      for (const value of curve.low) if (value !== null && value < low) low = value;
      for (const value of curve.high) if (value !== null && value > high) high = value;
    }
  }
  if (group.log || high === 0 || high - low > 1e-9 * Math.abs(high)) return { autorange: true };
  return { autorange: false, range: high > 0 ? [0, 2 * high] : [2 * high, 0] };
}

function figure(key, title) {
  let entry = drawn.get(key);
  if (entry === undefined) {
    const box = document.createElement("figure");
    const caption = document.createElement("figcaption");
    const plot = document.createElement("div");
    caption.textContent = title;
    box.append(caption, plot);
    room.append(box);
    entry = { box, plot, bound: false, seen: false, text: "" };
    drawn.set(key, entry);
    sight.observe(box);
  }
  return entry;
}

function zoomed(change) {
  const from = change["xaxis.range[0]"];
  if (change["xaxis.autorange"]) range = null;
  else if (from !== undefined) range = [from, change["xaxis.range[1]"]];
  else return;
  refresh();
}

async function refresh() {
  if (asking) askAgain = true;
  if (asking || document.hidden) return;
  asking = true;
  clearTimeout(due);
  let pauseMs = SOONEST_MS;
  try {
    const asked = new URLSearchParams({ points: String(CURVE_POINTS) });
    if (range !== null) { asked.set("first", String(Math.floor(range[0]))); asked.set("last", String(Math.ceil(range[1]))); }
    const text = await (await fetch(`api/history?${asked}`)).text();
    const answer = JSON.parse(text);
    const told = CURVE_GROUPS.filter((group) =>
      answer.attempts.some((part) => group.fields.some((field) => part.curves[field])));
    const lib = told.length > 0 ? await loadPlotly() : null;
    // All have their places before the first is drawn: one that stood alone would be as wide as the page.
    const entries = told.map((group) => figure(group.title, group.title));
    if (entries.some((entry) => !entry.bound)) {
      for (const entry of entries) if (entry.bound) lib.Plots.resize(entry.plot);
    }
    for (const [number, group] of told.entries()) {
      const entry = entries[number];
      if (entry.text === text || (entry.bound && !entry.seen)) continue;
      await lib.react(entry.plot, traces(group, answer), layout(group, answer),
        { displayModeBar: false, responsive: true, doubleClick: "reset" });
      if (!entry.bound) { entry.bound = true; entry.plot.on("plotly_relayout", zoomed); }
      entry.text = text;
      await new Promise((resume) => { setTimeout(resume); });
    }
    said(answer, told.length);
    await refreshStrips();
    if (answer.read === null) pauseMs = Math.min(LATEST_MS, Math.max(SOONEST_MS, pointMs(answer)));
  } catch {
    read.textContent = "not to be had right now";
  } finally {
    asking = false;
    if (askAgain) pauseMs = 0;
    askAgain = false;
    due = setTimeout(refresh, pauseMs);
  }
}

// Of a long run the next point comes after minutes: what is drawn would be fetched again and again for nothing.
function pointMs(answer) {
  const times = (answer.attempts.at(-1)?.times ?? []).filter((t) => t !== null);
  return times.length < 2 ? 0 : (1000 * (times.at(-1) - times[0])) / (times.length - 1);
}

function said(answer, count) {
  const notes = [];
  if (answer.read !== null) notes.push(`reading the run's files: ${Math.floor(100 * answer.read)} %`);
  if (count === 0) notes.push("no step has told anything yet");
  if (answer.attempts_left_out > 0) notes.push(`${answer.attempts_left_out} earlier attempts are not drawn`);
  if (answer.attempts.some((it) => it.redone_to !== null)) notes.push("shaded: steps done once more");
  if (range !== null) notes.push("double click shows all again");
  read.textContent = notes.join(" · ");
}

async function refreshStrips() {
  const answer = await (await fetch("api/strips")).json();
  for (const strip of answer.ranks) drawStrip(strip, "rank", (at) => `step ${strip.base + at * strip.width}`);
  for (const strip of answer.gpus) {
    drawStrip(strip, "", (at) => new Date(1000 * (strip.base + at * strip.width)).toISOString().slice(0, 19) + "Z");
  }
}

function stripBox(strip) {
  const id = `strip_${strip.field}`;
  let box = document.getElementById(id);
  if (box === null) {
    box = document.createElement("figure");
    box.id = id;
    const caption = document.createElement("figcaption");
    caption.textContent = STRIP_TITLES[strip.field] ?? strip.field;
    const canvas = document.createElement("canvas");
    const note = document.createElement("p");
    note.className = "dim";
    box.append(caption, canvas, note);
    strips.append(box);
  }
  return box;
}

function drawStrip(strip, what, place) {
  const box = stripBox(strip);
  const [canvas, note] = [box.querySelector("canvas"), box.querySelector("p")];
  if (canvas.width !== strip.columns || canvas.height !== strip.rows) {
    canvas.width = strip.columns;
    canvas.height = strip.rows;
    canvas.style.height = `${Math.max(LOWEST_STRIP_PX, Math.min(HIGHEST_STRIP_PX, ROW_PX * strip.rows))}px`;
  }
  const context = canvas.getContext("2d");
  const image = context.createImageData(strip.columns, strip.rows);
  const cells = Uint8Array.from(atob(strip.cells), (letter) => letter.charCodeAt(0));
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  for (let at = 0; at < cells.length; at += 1) paint(image.data, 4 * at, cells[at], dark, strip.low_is_worse);
  context.putImageData(image, 0, 0);
  const shown = (value) => (strip.unit === "bytes" ? `${(value / 2 ** 30).toFixed(1)} GiB`
    : `${Number(value.toPrecision(3))}${strip.unit ? ` ${strip.unit}` : ""}`);
  const named = (name) => (what ? name : name.replace(/ (\d+)$/, " GPU $1"));
  const ends = `${shown(strip.low)} … ${shown(strip.high)}`;
  const outliers = strip.extreme.length > 0 ? `${strip.low_is_worse ? "lowest" : "highest"} now: ${what}${what && strip.extreme.length > 1 ? "s" : ""} ${strip.extreme.map(named).join(", ")}` : "none stands out";
  note.textContent = `${ends}; ${outliers}`;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${box.querySelector("figcaption").textContent}: ${note.textContent}`);
  canvas.onmousemove = (event) => {
    const row = Math.floor((event.offsetY / canvas.clientHeight) * strip.rows);
    const column = Math.floor((event.offsetX / canvas.clientWidth) * strip.columns);
    const level = cells[row * strip.columns + column];
    const value = level ? shown(strip.low + ((level - 1) / 254) * (strip.high - strip.low)) : "not told";
    canvas.title = `${what} ${named(strip.names[row])}, ${place(column)}: ${value}`;
  };
}

function paint(data, at, level, dark, lowIsWorse) {
  if (level === 0) { data[at + 3] = 0; return; }
  const share = lowIsWorse ? (255 - level) / 254 : (level - 1) / 254;
  const low = dark ? [30, 42, 54] : [232, 238, 243];
  const high = dark ? [255, 176, 92] : [176, 58, 20];
  for (let place = 0; place < 3; place += 1) data[at + place] = low[place] + share * (high[place] - low[place]);
  data[at + 3] = 255;
}

document.addEventListener("visibilitychange", refresh);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const entry of drawn.values()) entry.text = "";
  refresh();
});
refresh();
