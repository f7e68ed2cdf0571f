// The run page: asks for the counters and for sampled events once a second, and draws them.
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
  [now, before, past.notes, shown.events] = [null, null, [], []];
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
  document.title = `${host}: L0 trigger (Pollux)`;
}

// By the rules that are in force, and of them alone: the share now, and since they came.
function accepted() {
  const set = now.rules.at(-1);
  if (!set) return ["–", "nothing is decided"];
  const old = before?.rules.find((other) => other.set === set.set);
  const [part, whole] = [set.accepted - (old?.accepted ?? 0), set.events - (old?.events ?? 0)];
  return [before ? share(part, whole) : "–", `${share(set.accepted, set.events)} by set ${set.set}`];
}

// Names, what they are now, what they were since the start, and whether that is bad, now.
function tiles() {
  const counter = (name, of, fault = false) =>
    [name, perSecond(of), `${short(of(now))} in all`, fault && grown(of) > 0];
  const { budget_ns } = now.deadline;
  const [latency, total] = [now.now.latency_ns, now.latency_ns.total];
  const budget = `budget ${time(budget_ns)}; ${time(total?.p9999 ?? 0)} in all`;
  return [
    counter("Events/s", (run) => run.events.built),
    ["Accepted", ...accepted()],
    counter("Rings/s", (run) => run.events.rings),
    counter("Frames/s", (run) => run.ledger.from_wire),
    // Without those that are under way.
    counter("Dropped/s", (run) => sum(Object.values(run.ledger.dropped)), true),
    counter("Missing/s", (run) => run.missing, true),
    ["Latency p99.99", latency.count ? time(latency.p9999) : "–", budget, latency.p9999 > budget_ns],
    counter("Late decisions/s", (run) => run.deadline.late_decisions, true),
    counter("Samples not shown/s", (run) => run.sampling.missed),
  ];
}

function showTiles() {
  by("now").replaceChildren(...tiles().map(([name, value, total, bad]) => {
    const tile = make("div", bad ? { class: "bad" } : {});
    tile.append(make("dt", {}, name), make("dd", {}, value), make("dd", { class: "total" }, total));
    return tile;
  }));
}

// A number since the start, in colour while it grows.
const fault = (of, text = short) => make("td", grown(of) > 0 ? { class: "bad" } : {}, text(of(now)));

// What is wrong with a stream now, and what was.
function wrong(stream, i) {
  const current = now.now.faults[i] ?? [];
  const old = stream.faults.filter((word) => !current.includes(word));
  const cell = make("td", current.length ? { class: "bad" } : {}, current.join(", ") || (old.length ? "" : "none"));
  if (old.length) cell.append(make("span", { class: "old" }, `${current.length ? "; " : ""}earlier: ${old.join(", ")}`));
  return cell;
}

function showStreams() {
  fill("streams", now.streams.map((stream, i) => {
    const bits = 8 * rate((run) => run.streams[i].bytes);
    const title = `board ${stream.board}, UDP port ${stream.udp_port}`;
    const name = make("th", { scope: "row", title }, `${stream.id} (${stream.udp_port})`);
    const picture = make("td");
    picture.append(spark(({ streams }) => streams[i]));
    return row([name, picture, perSecond((run) => run.streams[i].packets), before ? (bits / 1e6).toFixed(1) : "–",
      ...["missing", "duplicates", "late"].map((what) => fault((run) => run.streams[i][what])), wrong(stream, i)]);
  }));
}

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

// The sets of rules, the one in force last.
function showRules() {
  const sets = [...now.rules];
  const inForce = sets.pop();
  by("sets-table").hidden = sets.length === 0;
  if (!inForce) {
    by("rules-now").textContent = "Nothing is decided here.";
    return;
  }
  const { set, events, accepted, monitored } = inForce;
  by("rules-now").textContent = `Set ${set}, after ${many(sets.length, "change")}: ${events} events, `
    + `${accepted} (${share(accepted, events)}) accepted`
    + (monitored > 0 ? `, ${monitored} of those rejected are kept.` : ".");
  const old = (run) => run.rules.find((other) => other.set === set);
  fill("rules", inForce.rules.map(({ name, asks, accepted }, i) => row([
    make("th", { scope: "row" }, name), make("td", { class: "words" }, asks),
    perSecond((run) => old(run)?.rules[i].held ?? 0), perSecond((run) => old(run)?.rules[i].accepted ?? 0),
    `${accepted}`])));
  fill("sets", sets.reverse().map(({ set, events, accepted, monitored, rules }) => row([
    make("th", { scope: "row" }, `${set}`), make("td", { class: "words" }, rules.map(({ name }) => name).join(", ")),
    `${events}`, `${accepted}`, `${monitored}`])));
}

function showFiles() {
  const files = [["Event records (--events-out)", "recording"], ["Events with hits (--record)", "record"]];
  const rows = files.filter(([, key]) => now[key]).map(([name, key]) => row([
    make("th", { scope: "row" }, name), `${now[key].written}`, perSecond((run) => run[key].written),
    fault((run) => run[key].lost, String)]));
  if (rows.length === 0) rows.push(row([make("td", { colspan: 4 }, "Nothing is recorded.")]));
  fill("files", rows);
}

// Asking.

async function ask(what) {
  const answer = await fetch(what, { signal: AbortSignal.timeout(5 * POLL_MS) });
  if (!answer.ok) throw new Error(`${what}: ${answer.status}`);
  return answer.json();
}

// The notes of the whole run, when there is a new one.
async function askForPast(run) {
  const last = past.notes.at(-1);
  if (!last || run.uptime_s - last.uptime_s >= past.every_s) past = await ask("history.json");
}

async function hear() {
  plane ??= await ask("plane.json");
  const run = await ask("run.json");
  // It has been started again.
  if (now && run.about.started_unix_s !== now.about.started_unix_s) forget();
  const events = await ask(`events.json?after=${shown.events.at(-1)?.number ?? 0}`);
  const lately = await ask("minute.json");
  await askForPast(run);
  // All at once, so that what is shown is of one time.
  take(run);
  minute = lately;
  shown.events = [...shown.events, ...events].slice(-KEEP);
}

function show() {
  if (layers.length === 0) showPlane();
  for (const part of [showRun, showTiles, showRates, showStreams, showDrops, showRules, showFiles, showLatency]) part();
  if (shown.live || shown.at === null) showEvent();
}

async function poll() {
  const state = by("state");
  try {
    await hear();
  } catch {
    state.textContent = "The trigger does not answer; asking again.";
    state.className = "lost";
    return;
  }
  show();
  state.textContent = `Version ${now.version}, up for ${Math.floor(now.uptime_s)} s.`;
  state.className = "";
}

async function main() {
  listen();
  for (;;) {
    // A hidden page does not poll.
    if (!document.hidden) await poll().catch(console.error);
    await new Promise((resume) => setTimeout(resume, POLL_MS));
  }
}

main();
