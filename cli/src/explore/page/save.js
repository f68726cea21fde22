// Saves a drawing as an SVG file that needs neither the page nor its style sheet.

import { el, main } from "./common.js";

/** The styles of the drawings, with the values that the page computes: colors of the scheme, sizes. */
const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "paint-order", "vector-effect", "font-family", "font-size", "font-weight", "text-anchor", "display"];
/** Attributes of the drawings. Links to the page and event handlers are not among them. */
const KEPT = new Set(["x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "d", "width", "height", "viewBox", "preserveAspectRatio", "transform"]);
const ELEMENTS = new Set(["svg", "g", "rect", "circle", "line", "path", "text", "title"]);
const SVG = "http://www.w3.org/2000/svg";

/** A bar with the button that saves a drawing. `drawing` returns it when the button is pressed. */
export const saveBar = (name, drawing) => el("p", { class: "bar" },
  el("button", { type: "button", class: "save", onclick: () => save(drawing(), name) }, "Save as SVG"));

function save(drawing, name) {
  // Only an element of the page has styles.
  const isShown = drawing.isConnected;
  if (!isShown) main.append(drawing);
  const url = URL.createObjectURL(new Blob([file(drawing)], { type: "image/svg+xml" }));
  if (!isShown) drawing.remove();
  const link = el("a", { href: url, download: `${name.replace(/[^\w.-]+/g, "-").slice(0, 80)}.svg` });
  link.click();
  // After the browser has read the file.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** The text of the file. The serializer escapes the texts of keys and values. */
function file(drawing) {
  const own = copy(drawing);
  const ground = document.createElementNS(SVG, "rect");
  const box = drawing.viewBox.baseVal;
  for (const [key, value] of Object.entries({ x: box.x, y: box.y, width: box.width, height: box.height })) ground.setAttribute(key, value);
  ground.setAttribute("fill", getComputedStyle(drawing).backgroundColor);
  own.prepend(ground);
  // A drawing that is made for the file has no size on the page, so its own is taken.
  const { width, height } = drawing.classList.contains("outline") ? box : drawing.getBoundingClientRect();
  own.setAttribute("width", Math.round(width));
  own.setAttribute("height", Math.round(height));
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(own)}\n`;
}

/** A copy with styles in place of classes. A link becomes a group. */
function copy(node) {
  if (node.nodeType === Node.TEXT_NODE) return document.createTextNode(printable(node.data));
  const name = node.localName === "a" ? "g" : node.localName;
  if (!ELEMENTS.has(name)) return document.createDocumentFragment();
  const own = document.createElementNS(SVG, name);
  for (const { name: key, value } of node.attributes) if (KEPT.has(key)) own.setAttribute(key, value);
  if (name !== "title") styles(node, own);
  own.append(...[...node.childNodes].map(copy));
  return own;
}

function styles(node, own) {
  const computed = getComputedStyle(node);
  const isShape = own.localName !== "g" && own.localName !== "svg";
  for (const style of isShape ? STYLES : []) {
    const value = computed.getPropertyValue(style);
    if (value && !["none", "normal"].includes(value) || style === "fill") own.setAttribute(style, value);
  }
}

/** XML has no control characters, not even escaped. */
const printable = (text) => text.replace(/[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "\uFFFD");
