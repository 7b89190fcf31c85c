export default function Shop() {
  return <p>Shop</p>;
}
