// @ts-check

/** @type {import('@docusaurus/types').Config} */
const config = {
  title: "Tapline SDK",
  tagline: "Card and wallet payments in mobile apps",
  url: "https://docs.tapline.example",
  baseUrl: "/",
  onBrokenLinks: "throw",
  i18n: { defaultLocale: "en", locales: ["en"] },
  presets: [
    ["classic", { docs: { routeBasePath: "/", sidebarPath: "./sidebars.js" }, blog: false }],
  ],
  themeConfig: {
    navbar: { title: "Tapline", items: [{ type: "docSidebar", sidebarId: "main", label: "Docs" }] },
  },
};

module.exports = config;
