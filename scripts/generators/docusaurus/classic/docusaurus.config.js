// Sidebars of every kind, instances, components. routeBasePath: 'not-this' in a comment plays no part.
export default {
  title: 'Kites',
  url: 'https://kites.example.com',
  baseUrl: '/',
  onBrokenLinks: 'warn',
  presets: [
    [
      'classic',
      /** @type {import('@docusaurus/preset-classic').Options} */
      ({
        docs: {
          sidebarPath: './sidebars.js', /* the one below: path: 'nowhere' */
          exclude: ['**/_*/**', '**/_*.{js,jsx,ts,tsx,md,mdx}', '**/secret/**'],
        },
        blog: {path: 'news', routeBasePath: 'news'},
        theme: {},
      }),
    ],
  ],
  plugins: [
    [
      '@docusaurus/plugin-content-docs',
      {
        id: 'api',
        path: 'api',
        routeBasePath: 'reference/api',
        sidebarPath: './sidebarsApi.js',
        numberPrefixParser: false,
      },
    ],
    ['@docusaurus/plugin-content-docs', {routeBasePath: 'community', id: 'community', path: 'community', sidebarPath: false}],
  ],
};
