// What the page of the farm has of its own: tiles and columns.
"use strict";

const RATES = [
  ["Events", [["decided", ({ decided }) => decided], ["accepted", ({ accepted }) => accepted]]],
  ["Frames", [["from the wire", ({ frames }) => frames]]],
  ["Faults", [["dropped", dropped], ["incomplete", ({ incomplete }) => incomplete], ["sent again", ({ resent }) => resent]]],
];

// Names, what they are now, what they were since the start, and whether that is bad, now.
function tiles() {
  const { in_flight, pending, excluded } = now.events;
  return [
    counter("Events/s", (run) => run.events.decided),
    ["Accepted", share(grown((run) => run.events.accepted), grown((run) => run.events.decided)),
      share(now.events.accepted, now.events.decided)],
    counter("Frames/s", (run) => run.ledger.from_wire),
    counter("Refused triggers/s", (run) => run.events.refused, true),
    counter("Incomplete/s", (run) => run.events.incomplete, true),
    counter("Sent again/s", (run) => run.events.resent, true),
    ["Packs in flight", short(in_flight), `${short(pending)} wait for a buffer`],
    ["Excluded members", `${excluded}`, "", excluded > 0],
  ];
}

function showColumns() {
  fill("columns", now.free.map((free, column) => row([make("th", { scope: "row" }, `${column}`), `${free}`])));
}

const program = {
  name: "The farm",
  title: "farm",
  async ask() { return null; },
  take() {},
  forget() {},
  parts: [showRun, showTiles, showRates, showColumns, showDrops, showLatency],
};

main();
