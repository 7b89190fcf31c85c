// As much of a document as the Markdown view uses: a small, true one, whose nodes print as HTML.

class Node {
  constructor(localName, text = "") {
    Object.assign(this, { localName, textContent: text, childNodes: [], parent: null });
  }

  append(...children) {
    for (const child of children) {
      const node = typeof child === "string" ? new Node("", child) : child;
      node.remove();
      node.parent = this;
      this.childNodes.push(node);
    }
  }

  remove() {
    if (this.parent) this.parent.childNodes = this.parent.childNodes.filter((one) => one !== this);
    this.parent = null;
  }

  replaceChildren(...children) {
    for (const child of [...this.childNodes]) child.remove();
    this.append(...children);
  }

  /** The nodes as text, with the attributes that could do harm; text is escaped. */
  html() {
    if (!this.localName) return this.textContent.replace(/&/g, "&amp;").replace(/</g, "&lt;");
    const shown = ["href", "src", "className", "start"].filter((name) => this[name] !== undefined);
    const attributes = shown.map((name) => ` ${name}="${this[name]}"`).join("");
    return `<${this.localName}${attributes}>${this.inside()}</${this.localName}>`;
  }

  inside() {
    return this.childNodes.map((one) => one.html()).join("");
  }
}

export const fakeDocument = {
  createElement: (name) => new Node(name),
  createTextNode: (text) => new Node("", text),
};
