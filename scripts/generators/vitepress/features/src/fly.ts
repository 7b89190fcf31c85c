import wind from "wind"

// #region fly
export function fly() {
  return wind(3)
}
// #endregion fly
