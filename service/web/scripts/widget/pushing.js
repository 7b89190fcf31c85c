// Place for the side panel beside the page: a padding of the page at that edge while the panel is open.

const LEAST = 480; // pixels that the page keeps; a page with less than that stays below the panel

/** Follow a box while `isWanted()`: `show` after each change of either, and `end`, which restores the page. */
export function pushPage(box, isWanted) {
  const page = document.documentElement;
  let before = null;
  const restore = () => {
    if (before) page.style.setProperty(...before);
    before = null;
  };
  const show = () => {
    restore();
    const { left, width } = box.getBoundingClientRect();
    if (!isWanted() || innerWidth - width < LEAST) return;
    const name = left > 0 ? "padding-right" : "padding-left";
    before = [name, page.style.getPropertyValue(name), page.style.getPropertyPriority(name)];
    const own = parseFloat(getComputedStyle(page).getPropertyValue(name)) || 0;
    page.style.setProperty(name, `${own + width}px`, "important");
  };
  addEventListener("resize", show);
  return { show, end: () => (removeEventListener("resize", show), restore()) };
}
