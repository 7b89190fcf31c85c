export function fly() {
  return 'up';
}
