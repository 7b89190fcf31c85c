// The addresses of the other files, by name: the service writes them here when it joins the files. A file's address is
// the SHA-256 of its body in base64url.

export const FILES = { panel: "", markdown: "", highlight: "", search: "", proof: "", texts: {}, labels: { en: "Ask" } };
