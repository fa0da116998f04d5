// Builds elements. All text becomes text nodes, so content of transcripts is never read as HTML.

/** An element. `props`: attributes, `class`, `on…` listeners, `data` for data attributes; children: nodes and texts. */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** An SVG element. */
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "data") Object.assign(node.dataset, value);
    else if (name === "css") setStyle(node, value);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Sets style properties by script, which the content policy allows. */
export function setStyle(node, properties) {
  for (const [name, value] of Object.entries(properties)) node.style.setProperty(name, value);
}

/** Replaces the children of an element. */
export function put(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const ESCAPES = /\u001b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\u0007\u001b]{0,512}(?:\u0007|\u001b\\)|[@-Z\\-_])/g;
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g;
const DIRECTIONS = /[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/g;

/** Text for display: terminal codes are removed, control characters and marks of direction become visible. */
export function visible(text) {
  return text
    .replace(ESCAPES, "")
    .replace(CONTROLS, (char) => String.fromCharCode(char === "\u007f" ? 0x2421 : 0x2400 + char.charCodeAt(0)))
    .replace(DIRECTIONS, (char) => `⟨U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** The text with handles such as #120-131 as links to their messages. A handle in quotes or code does not become a link, because it is text of the transcript. */
export function withHandles(text, linkTo) {
  const nodes = [];
  let from = 0;
  for (const found of text.matchAll(/#([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?(?![0-9A-Za-z])/g)) {
    if (found.index > 0 && /[^\s[,(-]/.test(text[found.index - 1])) continue;
    nodes.push(text.slice(from, found.index));
    nodes.push(h("a", { href: linkTo(Number(found[1])), class: "handle" }, found[0]));
    from = found.index + found[0].length;
  }
  return [...nodes, text.slice(from)];
}

/** A path. If there is no room, only its folders are cut; the name of the file stays whole. */
export function pathText(path) {
  const [, folders, name] = /^(.*\/)?([^/]*\/?)$/s.exec(path) || [null, "", path];
  return h("bdi", { class: "path" }, folders ? h("span", { class: "path-folders" }, visible(folders)) : null, h("span", {}, visible(name)));
}

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** A pattern for the words of a query: the whole query if the text has it, else each word from its beginning. */
export function queryPattern(query) {
  const words = query.split(/[\s,;:"'()]+/).filter((word) => word.length > 1 && !COMMON.has(word.toLowerCase()));
  const starts = words.map((word) => (/^[A-Za-z0-9]/.test(word) ? `(?<![A-Za-z0-9])${escaped(word)}` : escaped(word)));
  return new RegExp([query.trim().split(/\s+/).map(escaped).join("\\s+"), ...starts].join("|"), "gi");
}

/** A pattern for an exact text, with any white space between its words. */
export const exactPattern = (find) => new RegExp(find.trim().split(/\s+/).map(escaped).join("\\s+"), "gi");

/** A pattern for a text in another text: the exact text if it occurs, else its words. */
export function findPattern(text, find) {
  const whole = exactPattern(find);
  return text.search(whole) >= 0 ? whole : queryPattern(find);
}

const COMMON = new Set("a an the and or but if of to in on at by for with from as is am are was were be do does did have has had it its not no so".split(" "));

/** The text with every match of a pattern marked. */
export function withMarks(text, pattern) {
  const nodes = [];
  let from = 0;
  for (const found of text.matchAll(pattern)) {
    nodes.push(text.slice(from, found.index), h("mark", {}, found[0]));
    from = found.index + found[0].length;
  }
  return [...nodes, text.slice(from)];
}

/** An icon of the page's own set. */
export function icon(name) {
  const paths = {
    pin: "M9 3h6l-1 6 4 4v2h-5l-1 6-1-6H6v-2l4-4z",
    fold: "M4 6h16M4 12h4m4 0h0m4 0h4M8 18h8",
    unfold: "M12 4v6m0-6-3 3m3-3 3 3M4 12h16M12 20v-6m0 6-3-3m3 3 3-3",
    copy: "M9 9h10v10H9zM5 15V5h10",
    search: "M11 5a6 6 0 1 0 0 12 6 6 0 0 0 0-12zm4.5 10.5L20 20",
    sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v3m0 14v3M2 12h3m14 0h3M5 5l2 2m10 10 2 2M19 5l-2 2M7 17l-2 2",
    moon: "M20 14A8 8 0 1 1 10 4a6.5 6.5 0 0 0 10 10z",
    chevron: "m9 6 6 6-6 6",
    alert: "M12 4 2.5 20h19zM12 10v4m0 2.6v.4",
    drop: "M12 4v11m0 0-4-4m4 4 4-4M4 19h16",
  };
  const path = svg("path", {
    d: paths[name], fill: "none", stroke: "currentColor", "stroke-width": "1.8",
    "stroke-linecap": "round", "stroke-linejoin": "round",
  });
  return svg("svg", { viewBox: "0 0 24 24", width: "18", height: "18", "aria-hidden": "true", class: "icon" }, path);
}
