/** @type {import('@docusaurus/plugin-content-docs').SidebarsConfig} */
module.exports = {
  main: [
    "intro",
    "install",
    "quickstart",
    {
      type: "category",
      label: "Guides",
      items: ["guides/refunds", "guides/saved-cards", "guides/testing", "guides/offline"],
    },
    {
      type: "category",
      label: "Reference",
      items: ["reference/errors", "reference/limits", "reference/changelog"],
    },
  ],
};
