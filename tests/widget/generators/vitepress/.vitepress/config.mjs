export default {
  title: "Kite",
  // TAG
};
