// Addresses of pages of the documentation.

/**
 * A function from an address in an answer to one for a link: what begins with a slash is below the site's own address,
 * or begins with its path already.
 * On the site itself it stays relative, so that it opens in the same tab. Empty for what no link may lead to.
 */
export function linksBelow(base) {
  return (url) => {
    if (/^(https?|mailto):/i.test(url)) return url;
    if (!base) return "";
    const { pathname: folder } = new URL(base);
    const below = "./" + (`${url}/`.startsWith(folder) ? url.slice(folder.length) : url.replace(/^\//, ""));
    if (!URL.canParse(below, base)) return "";
    const found = new URL(below, base);
    const { origin, pathname, search, hash } = found;
    return origin === location.origin ? pathname.replace(/^\/+/, "/") + search + hash : found.href;
  };
}

/** The documentation's address with a slash at its end: the option's, else this site's root. */
export function baseOf(option) {
  try {
    const base = new URL(option || "/", location.href).href;
    return /^https?:/.test(base) ? base.replace(/\/?$/, "/") : "";
  } catch {
    return "";
  }
}
