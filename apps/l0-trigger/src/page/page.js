// What the page of the trigger has of its own: tiles, streams, rules, files and outputs.
"use strict";

const RATES = [
  ["Events", [["built", ({ events }) => events], ["accepted", ({ accepted }) => accepted]]],
  ["Frames", [["from the wire", ({ frames }) => frames]]],
  ["Faults", [["dropped", dropped], ["missing", ({ missing }) => missing], ["late decisions", (note) => note.late_decisions]]],
];

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

function showOutputs() {
  const rows = now.outputs.map(({ spec, delivered }, i) => row([
    make("th", { scope: "row" }, spec), `${delivered}`, perSecond((run) => run.outputs[i].delivered),
    fault((run) => sum(Object.values(run.outputs[i].lost)), String)]));
  if (rows.length === 0) rows.push(row([make("td", { colspan: 4 }, "Events are sent nowhere.")]));
  fill("outputs", rows);
}

function showEvents() {
  if (layers.length === 0) showPlane();
  if (shown.live || shown.at === null) showEvent();
}

const program = {
  name: "The trigger",
  title: "L0 trigger",
  async ask() {
    plane ??= await ask("plane.json");
    return ask(`events.json?after=${shown.events.at(-1)?.number ?? 0}`);
  },
  take(events) { shown.events = [...shown.events, ...events].slice(-KEEP); },
  forget() { shown.events = []; },
  parts: [showRun, showTiles, showRates, showStreams, showDrops, showRules, showFiles, showOutputs, showLatency, showEvents],
};

listen();
main();
