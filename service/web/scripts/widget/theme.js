// Light or dark as the page is, and an accent colour that can be read: 4.5:1 against what it stands on.

const [LIGHT, DARK] = [{ ground: [255, 255, 255], ink: [31, 35, 40] }, { ground: [24, 26, 31], ink: [232, 234, 237] }];
const READABLE = 4.6;

function luminance(color) {
  const [red, green, blue] = color.map((one) => ((one /= 255) <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

export function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

/** The three numbers of a computed colour; null where it is none, or shows what is behind it. */
export function rgbOf(computed) {
  const found = /^rgba?\(([\d.]+),? ([\d.]+),? ([\d.]+)(?:,? \/? ?([\d.]+))?\)$/.exec(computed);
  return found && Number(found[4] ?? 1) > 0.5 ? found.slice(1, 4).map(Number) : null;
}

/** The colour, moved towards the ink until it can be read on the ground. */
export function readable(color, ground, ink) {
  for (let part = 0; part < 1; part += 0.1) {
    const mixed = color.map((one, index) => Math.round(one + (ink[index] - one) * part));
    if (contrast(mixed, ground) >= READABLE) return mixed;
  }
  return ink;
}

/** Whether the page is dark: by its background, and where it has none, by its scheme. */
export function isPageDark() {
  for (const element of [document.body, document.documentElement]) {
    const color = rgbOf(getComputedStyle(element).backgroundColor);
    if (color) return luminance(color) < 0.2;
  }
  return /dark/.test(getComputedStyle(document.documentElement).colorScheme) && matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Keep the colours of a box right, until what is returned is called. `chosen` returns the theme that the options name. */
export function followTheme(host, box, chosen) {
  const probe = box.querySelector(".probe");
  const show = () => {
    const theme = chosen();
    const isDark = theme === "dark" || (theme !== "light" && isPageDark());
    const { ground, ink } = isDark ? DARK : LIGHT;
    box.classList.toggle("dark", isDark);
    const accent = rgbOf(getComputedStyle(probe).color) ?? [10, 88, 168];
    const white = [255, 255, 255];
    const onAccent = contrast(white, accent) >= READABLE ? white : [17, 17, 17];
    const fill = onAccent === white || contrast(onAccent, accent) >= READABLE ? accent : readable(accent, white, [0, 0, 0]);
    const css = (color) => `rgb(${color.join(" ")})`;
    host.style.setProperty("--on-accent", css(contrast(onAccent, fill) >= READABLE ? onAccent : white));
    box.style.setProperty("--fill", css(fill));
    box.style.setProperty("--link", css(readable(accent, ground, ink)));
  };
  const observer = new MutationObserver(show);
  for (const element of [document.documentElement, document.body]) observer.observe(element, { attributes: true });
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", show);
  show();
  return { show, end: () => (observer.disconnect(), scheme.removeEventListener("change", show)) };
}
