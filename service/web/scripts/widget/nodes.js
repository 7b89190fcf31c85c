// Nodes of the panel. Text of others becomes text nodes, never HTML.

const PATHS = {
  close: "M6 6l12 12M18 6L6 18",
  add: "M12 5v14M5 12h14",
  send: "M12 20V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  up: "M7 11v9H4v-9zM7 11l4-8 2 1v6h6l-1 10H7",
  down: "M17 13V4h3v9zM17 13l-4 8-2-1v-6H5L6 4h11",
  copy: "M9 9h10v11H9zM15 9V4H5v11h4",
  retry: "M19 12a7 7 0 1 1-2-5M19 3v5h-5",
};

/** An element with fields and children; `class` is the class, and names with a dash are attributes. */
export function make(name, fields = {}, ...children) {
  const made = document.createElement(name);
  for (const [field, value] of Object.entries(fields)) {
    if (field === "class") made.className = value;
    else if (field.includes("-")) made.setAttribute(field, value);
    else made[field] = value;
  }
  made.append(...children);
  return made;
}

export function icon(name) {
  const [svg, path] = ["svg", "path"].map((one) => document.createElementNS("http://www.w3.org/2000/svg", one));
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

export const button = (label, onclick, fields = {}) => make("button", { type: "button", onclick, ...fields }, label);

/** A button that shows an icon, and has its label as its name and tooltip. */
export const iconButton = (name, label, onclick, fields = {}) => button(icon(name), onclick, { ariaLabel: label, title: label, class: "icon", ...fields });

export const note = (text) => make("p", { class: "note" }, text);

/** Markdown's words without its marks and its code blocks' languages; each character stays at its place. */
export function blanked(markdown) {
  const blank = (found) => " ".repeat(found.length);
  return markdown.replace(/\]\([^)\s]{0,2000}\)|`{3}.*/g, blank).replace(/[[\]`*#|>]/g, " ");
}

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // a page without https
  }
}
