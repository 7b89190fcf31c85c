export default { paths: () => [{ params: { name: 'rope' } }] }
