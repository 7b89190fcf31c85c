/** Markdown to nodes of a document, while it is being written. Nothing is parsed as HTML. */

export interface MarkdownOptions {
  document?: Document;
  /** What relative addresses are relative to; they stay relative when left out. */
  base?: string;
  /** Changes an address, or refuses it with the empty string. */
  link?: (url: string) => string;
  /** The address of an image to show; images are links when left out. */
  image?: (url: string) => string;
  /** Gets each code block's `code` element once the block's end is there: to highlight it, for example. */
  code?: (element: HTMLElement) => void;
  /** Gets each link that is shown: to name it for screen readers, for example. */
  named?: (anchor: HTMLAnchorElement) => void;
}

export interface MarkdownView {
  /** Show the text so far. */
  update(text: string): void;
  clear(): void;
}

export declare function createMarkdown(element: Element, options?: MarkdownOptions): MarkdownView;
/** A text for another place: its links within the site with the whole addresses that `link` gives, or without a link. */
export declare function movable(text: string, link: (url: string) => string): string;
/** The address if a link may lead there: http, https, mailto or relative; else the empty string. */
export declare function safeUrl(url: string, base?: string): string;
/** The address of a page on a site: whole, or from the site's root. Empty for one that would lead off the site unsaid. */
export declare function pageUrl(url: string, site: string): string;

/** The address of a page, which counts from the root of its site or of its host, below that of the site. */
export declare function siteUrl(url: string, site: string): string;
