export default {
  index: 'Home',
  docs: 'Documentation',
  about: { title: 'About us', type: 'page' },
};
