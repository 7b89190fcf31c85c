// The options of `init`, of attributes of the tag, and of the site's own settings, in one shape. The names that
// Mintlify's widget has for them are understood too.

const FORMS = { widget: "popover", panel: "side", side: "side", popover: "popover", modal: "modal", inline: "inline" };
const DEFAULTS = { form: "side", theme: "auto", suggestions: [] };
const ALIASES = { starterQuestions: "suggestions", variant: "form", supportEmail: "handOff", trigger: "label" };
const GROUPS = { appearance: ["form", "theme", "accent", "radius", "font", "zIndex", "side"], labels: ["title", "greeting", "placeholder", "disclaimer", "label"] };
const NAMES = [...Object.values(GROUPS).flat(), "suggestions", "handOff", "base", "filter", "push"];
const EMPTY = [undefined, null, ""];

/** Options by their names; null stands for the default, of a group for that of all in it. A tag's list is separated by "|". */
export function normalized(given) {
  const flat = Object.assign({}, given, ...Object.keys(GROUPS).map((group) => given[group]));
  for (const [group, names] of Object.entries(GROUPS)) if (given[group] === null) for (const name of names) flat[name] ??= null;
  for (const [alias, name] of Object.entries(ALIASES)) if (alias in flat) flat[name] ??= flat[alias];
  const found = Object.fromEntries(NAMES.filter((name) => flat[name] !== undefined).map((name) => [name, flat[name]]));
  if (found.form) found.form = Object.hasOwn(FORMS, found.form) ? FORMS[found.form] : DEFAULTS.form;
  if (found.push) found.push = !/^(off|false)$/.test(found.push);
  else if (found.push === "") found.push = true; // an attribute without a value
  if (typeof found.suggestions === "string") found.suggestions = found.suggestions.split("|").map((one) => one.trim()).filter(Boolean);
  if (found.handOff && /^[^:/\s]+@[^/\s]+$/.test(found.handOff)) found.handOff = `mailto:${found.handOff}`;
  const { filterLanguage, filterVersion } = flat; // attributes
  if (filterLanguage || filterVersion) found.filter = { language: filterLanguage, version: filterVersion };
  if (found.filter) found.filter = filled(found.filter);
  return found;
}

const filled = (object) => Object.fromEntries(Object.entries(object).filter(([, value]) => !EMPTY.includes(value)));

/** All layers as one, the last one first. What is empty stands for what is below it. */
export const merged = (...layers) => Object.assign({}, DEFAULTS, ...layers.map(filled));

/** The link to people who help, with the conversation's id; empty where there is none. */
export function handOffLink({ handOff }, threadId, subject) {
  if (!/^(https?|mailto):/.test(handOff ?? "") || !URL.canParse(handOff)) return "";
  if (handOff.includes("{threadId}")) return handOff.replaceAll("{threadId}", encodeURIComponent(threadId));
  const url = new URL(handOff);
  const named = threadId ? `${subject} (${threadId})` : subject;
  if (url.protocol === "mailto:") return `${handOff}${url.search ? "&" : "?"}subject=${encodeURIComponent(named)}`;
  if (threadId) url.searchParams.set("threadId", threadId);
  return url.href;
}
