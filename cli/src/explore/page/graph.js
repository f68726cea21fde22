// The edges of one vertex of a graph, as a drawing and as tables.

import { el, keyLink, link, main, more, read, svg, table, value } from "./common.js";
import { saveBar } from "./save.js";

/** The height of a neighbour in the drawing. */
const ROW = 17;
/** The edges of a side whose labels fit into the drawing. */
const LABELLED = 14;

export async function showGraph({ name, key = "", vertex = "" }) {
  const data = await read("graph", { name, key, vertex });
  const input = el("input", { name: "vertex", value: vertex || data.vertex || "", "aria-label": "Vertex", placeholder: "a vertex, such as \"ORD\" or 7", spellcheck: "false" });
  const search = (event) => { event.preventDefault(); location.hash = link("graph", { name, vertex: input.value }); };
  const keys = [data.table, data.name].map((part) => el("a", { href: link("browse", { select: part }) }, part));
  main.replaceChildren(
    el("h1", {}, data.name),
    el("p", { class: "bar" }, "Keys of ", keys[0], " and ", keys[1]),
    el("form", { class: "bar", onsubmit: search }, input, el("button", {}, "Show the vertex")),
    ...(data.vertex === null ? [el("p", { class: "quiet" }, "The graph has no edges.")] : neighbourhood(data)));
}

function neighbourhood(data) {
  const [out, into] = data.directed ? ["Outgoing edges", "Incoming edges"] : ["Edges to greater ends", "Edges to smaller ends"];
  const { record } = data;
  return [
    record ? el("p", {}, "The record of the vertex: ", keyLink(record), " = ", value(record)) : "",
    ...(data.out.length + data.in.length > 0 ? drawn(data) : [el("p", {}, "The vertex ", el("code", {}, data.vertex), " has no edges.")]),
    edges(out, data.out, data.more_out, data), edges(into, data.in, data.more_in, data)];
}

function drawn(data) {
  const picture = drawing(data);
  return [picture, saveBar(`${data.name} ${data.vertex}`, () => picture)];
}

const centred = (data, edge) => link("graph", { name: data.name, key: edge.other_hex });

function edges(title, list, hasMore, data) {
  const rows = list.map((edge) => [edge.label, el("a", { href: centred(data, edge) }, el("code", {}, edge.other)), value(edge), keyLink(edge)]);
  return el("section", {}, el("h2", {}, `${title}: ${list.length}${hasMore ? " or more" : ""}`),
    table(["Label", "Vertex", "Properties", "~Key"], rows, "None."), more(hasMore));
}

/** The vertex in the middle, sources on the left and targets on the right, each side on a curve. */
function drawing(data) {
  const width = Math.max(300, main.clientWidth - (matchMedia("(max-width: 640px)").matches ? 24 : 40));
  const rows = Math.max(data.out.length, data.in.length);
  const height = Math.max(240, (rows + 2) * ROW);
  const middle = { x: width / 2, y: height / 2 };
  const picture = svg("svg", { class: "graph", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `The neighbours of ${data.vertex}` });
  const sides = [[data.in, -1, "in"], [data.out, 1, "out"]];
  for (const [list, sign, cls] of sides) picture.append(svg("g", { class: cls }, ...side(list, sign, middle, data)));
  picture.append(svg("g", { class: "centre" },
    svg("circle", { cx: middle.x, cy: middle.y, r: 8 }),
    svg("text", { x: middle.x, y: middle.y - 14 }, cut(data.vertex, 24))));
  return picture;
}

function side(list, sign, middle, data) {
  const step = Math.min(4 * ROW, (2 * middle.y - ROW) / Math.max(1, list.length));
  const ends = list.map((edge, at) => {
    const y = middle.y + (at - (list.length - 1) / 2) * step;
    const bend = Math.sqrt(Math.max(0, 1 - ((y - middle.y) / (middle.y * 1.1)) ** 2));
    return { edge, x: middle.x + sign * middle.x * (0.3 + 0.3 * bend), y };
  });
  const lines = ends.map(({ x, y }) => svg("line", { x1: middle.x, y1: middle.y, x2: x, y2: y }));
  const arrows = data.directed ? ends.map((end) => arrow(end, sign, middle)) : [];
  const labels = list.length > LABELLED ? [] : ends.map(({ edge, x, y }) =>
    svg("text", { class: "label", x: middle.x + (x - middle.x) * 0.6, y: middle.y + (y - middle.y) * 0.6 + 4 }, cut(edge.label, 16)));
  return [...lines, ...arrows, ...labels, ...ends.map((end) => neighbour(end, sign, middle, data))];
}

/** An arrowhead beside the neighbour, in the direction of the edge. */
function arrow({ x, y }, sign, middle) {
  const inwards = Math.atan2(middle.y - y, middle.x - x);
  const [distance, back] = sign > 0 ? [8, inwards] : [18, inwards + Math.PI];
  const tip = { x: x + distance * Math.cos(inwards), y: y + distance * Math.sin(inwards) };
  const corner = (turn) => `${tip.x + 8 * Math.cos(back + turn)} ${tip.y + 8 * Math.sin(back + turn)}`;
  return svg("path", { class: "arrow", d: `M${tip.x} ${tip.y}L${corner(0.4)}L${corner(-0.4)}z` });
}

// A link of the tables leads to the same vertex, so the drawing is not in the order of the keyboard.
function neighbour({ edge, x, y }, sign, middle, data) {
  const room = Math.floor((sign > 0 ? 2 * middle.x - x : x) / 7.4) - 2;
  const text = svg("text", { x: x + sign * 10, y: y + 4, "text-anchor": sign > 0 ? "start" : "end" }, cut(edge.other, room));
  return svg("a", { href: centred(data, edge), tabindex: -1 },
    svg("title", {}, `${edge.label}: ${edge.other} (${edge.value})`), svg("circle", { cx: x, cy: y, r: 5 }), text);
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, Math.max(1, most - 1))}…` : text);
