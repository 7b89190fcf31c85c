export default {
  index: 'Welcome',
  '-- kinds': { type: 'separator', title: 'Kinds' },
  green: { title: 'Green tea' },
  brewing: 'How to brew',
  secret: { display: 'hidden' },
  elsewhere: { title: 'Elsewhere', href: 'https://example.com' },
};
