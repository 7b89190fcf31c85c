export default {
  title: "Kite",
  url: "https://docs.example.com",
  baseUrl: "/",
  // TAG
  presets: [["classic", { docs: { routeBasePath: "/", path: "docs" }, blog: false, theme: {} }]],
};
