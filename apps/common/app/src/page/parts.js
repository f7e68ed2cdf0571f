// What all of the page is made with.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

const by = (id) => document.getElementById(id);

function make(name, attributes = {}, text = "") {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
}

function shape(name, attributes = {}, text = "") {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text) element.textContent = text;
  return element;
}

function row(cells) {
  const tr = make("tr");
  for (const cell of cells) tr.append(cell instanceof Node ? cell : make("td", {}, cell));
  return tr;
}

// Gives a table its rows. Each cell has the name of its column, which is beside it where there is no
// room for columns.
function fill(id, rows) {
  const body = by(id);
  const names = [...body.closest("table").tHead.rows[0].cells].map((cell) => cell.textContent);
  for (const cell of rows.flatMap((tr) => [...tr.cells])) {
    if (cell.colSpan === 1) cell.dataset.column = names[cell.cellIndex];
  }
  body.replaceChildren(...rows);
}

// Numbers for people: three digits and a prefix.
function short(n) {
  const steps = [[1e9, " G"], [1e6, " M"], [1e3, " k"]];
  const [unit, name] = steps.find(([unit]) => n >= unit) ?? [1, ""];
  return (n / unit).toFixed(n / unit >= 100 || (unit === 1 && Number.isInteger(n)) ? 0 : 1) + name;
}

function time(ns) {
  const steps = [[1e9, " s"], [1e6, " ms"], [1e3, " µs"]];
  const [unit, name] = steps.find(([unit]) => ns >= unit) ?? [1, " ns"];
  return `${+(ns / unit).toPrecision(3)}${name}`;
}

const sum = (numbers) => numbers.reduce((total, n) => total + n, 0);

const many = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;

// A moment, by the clock of UTC: to the second, or with thousandths.
function clock(unix_s, digits = 0) {
  const [day, at] = new Date(1000 * unix_s).toISOString().slice(0, -1).split("T");
  return { day, at: digits ? at.slice(0, 9 + digits) : at.slice(0, 8) };
}

// Colours that tell rings and causes apart: those of the classes c0 to c7.
const colour = (n) => `c${n % 8}`;

const key = (n) => make("span", { class: `key ${colour(n)}`, "aria-hidden": "true" });
