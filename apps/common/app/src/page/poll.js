// Asks for the counters once a second; what of them is now, and what was. A program's page.js has
// `tiles`, `RATES` and `program`: its name, what else it asks for, and its parts.
"use strict";

const POLL_MS = 1000;
// Seconds that are "now": rates and colours are of what has happened in them.
const WINDOW = 5;

// The counters of the last seconds, the newest last; those at the ends of the window; and what was
// noted of the last minute and of the whole run.
const recent = [];
let now = null;
let before = null;
let minute = { every_s: 1, notes: [] };
let past = { every_s: 1, notes: [] };

function take(run) {
  recent.push(run);
  while (recent.length > 2 && run.uptime_s - recent[1].uptime_s >= WINDOW) recent.shift();
  // The page was hidden for a while.
  if (run.uptime_s - recent[0].uptime_s > 2 * WINDOW) recent.splice(0, recent.length - 1);
  [before, now] = [recent.length > 1 ? recent[0] : null, run];
}

function forget() {
  recent.length = 0;
  [now, before, past.notes] = [null, null, []];
  program.forget();
}

// How much more it is than at the beginning of the window, and that a second.
const grown = (of) => (before ? Math.max(0, of(now) - of(before)) : 0);
const rate = (of) => (before ? grown(of) / (now.uptime_s - before.uptime_s) : 0);
const perSecond = (of) => (before ? short(rate(of)) : "–");
const share = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(1)} %` : "–");

// Which run it is.
function showRun() {
  const { host, run, config, started_unix_s } = now.about;
  const { day, at } = clock(started_unix_s);
  const ports = now.ports.map(({ spec }) => spec).join(", ");
  const number = run === undefined ? [] : [["Run", `${run}`]];
  const about = [["Host", host], ...number, ["Started", `${day} ${at} UTC`],
    ["Configuration", config ?? "built in"], [now.ports.length === 1 ? "Port" : "Ports", ports]];
  by("about").replaceChildren(...about.map(([name, value]) => {
    const item = make("div");
    item.append(make("dt", {}, name), make("dd", {}, value));
    return item;
  }));
  document.title = `${host}: ${program.title} (Pollux)`;
}

// A tile of a counter: its name, what it is now, what it was since the start, and whether that is bad,
// now.
const counter = (name, of, fault = false) =>
  [name, perSecond(of), `${short(of(now))} in all`, fault && grown(of) > 0];

function showTiles() {
  by("now").replaceChildren(...tiles().map(([name, value, total, bad]) => {
    const tile = make("div", bad ? { class: "bad" } : {});
    tile.append(make("dt", {}, name), make("dd", {}, value), make("dd", { class: "total" }, total));
    return tile;
  }));
}

// A number since the start, in colour while it grows.
const fault = (of, text = short) => make("td", grown(of) > 0 ? { class: "bad" } : {}, text(of(now)));

function showDrops() {
  const { from_wire, delivered, dropped } = now.ledger;
  const causes = Object.keys(dropped);
  const [first, last] = [minute.notes.at(0), minute.notes.at(-1)];
  const rows = causes.map((cause, n) => {
    const name = make("th", { scope: "row" });
    name.append(key(n), cause);
    const lately = (last?.dropped[cause] ?? 0) - (first?.dropped[cause] ?? 0);
    const of = (run) => run.ledger.dropped[cause] ?? 0;
    return row([name, short(dropped[cause]), short(lately), fault(of, () => perSecond(of))]);
  });
  if (rows.length === 0) rows.push(row([make("td", { colspan: 4 }, "Nothing was dropped.")]));
  fill("drops", rows);
  const lines = causes.map((cause) => [cause, (note) => note.dropped[cause] ?? 0]);
  by("drop-plot").replaceChildren(...(causes.length ? [ofMinute("Frames dropped, last minute", lines)] : []));
  const lost = sum(Object.values(dropped));
  const under = from_wire - delivered - lost;
  by("balance").textContent = `${from_wire} frames from the wire = ${delivered} delivered + ${lost} dropped`
    + (under > 0 ? ` + ${under} under way.` : ".");
}

// Asking.

async function answered(what) {
  const answer = await fetch(what, { signal: AbortSignal.timeout(5 * POLL_MS) });
  if (!answer.ok) throw new Error(`${what}: ${answer.status}`);
  return answer;
}

const ask = async (what) => (await answered(what)).json();

// The notes of the whole run, when there is a new one.
async function askForPast(run) {
  const last = past.notes.at(-1);
  if (!last || run.uptime_s - last.uptime_s >= past.every_s) past = await ask("history.json");
}

async function hear() {
  const run = await ask("run.json");
  // It has been started again.
  if (now && run.about.started_unix_s !== now.about.started_unix_s) forget();
  const more = await program.ask();
  const lately = await ask("minute.json");
  await askForPast(run);
  // All at once, so that what is shown is of one time.
  take(run);
  minute = lately;
  program.take(more);
}

async function poll() {
  const state = by("state");
  try {
    await hear();
  } catch {
    state.textContent = `${program.name} does not answer; asking again.`;
    state.className = "lost";
    return;
  }
  for (const part of program.parts) part();
  state.textContent = `Version ${now.version}, up for ${Math.floor(now.uptime_s)} s.`;
  state.className = "";
}

async function main() {
  for (;;) {
    // A hidden page does not poll.
    if (!document.hidden) await poll().catch(console.error);
    await new Promise((resume) => setTimeout(resume, POLL_MS));
  }
}
