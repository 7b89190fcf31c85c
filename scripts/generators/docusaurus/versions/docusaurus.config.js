module.exports = {
  title: 'Boats',
  url: 'https://boats.example.com',
  baseUrl: '/boats/',
  onBrokenLinks: 'warn',
  trailingSlash: false,
  i18n: {defaultLocale: 'en', locales: ['en', 'fr', 'pt-BR'], localeConfigs: {'pt-BR': {label: 'Português', path: 'br'}, fr: {baseUrl: '/bateaux/'}}},
  presets: [
    [
      '@docusaurus/preset-classic',
      {
        docs: {
          sidebarPath: require.resolve('./sidebars.js'),
          lastVersion: '2.0.0',
          versions: {
            current: {label: 'Canary', path: 'canary', banner: 'unreleased'},
            '1.5.0': {label: '1.5', path: 'one', banner: 'unmaintained'},
          },
        },
        blog: false,
      },
    ],
  ],
  plugins: [['@docusaurus/plugin-content-docs', {id: 'sails', path: 'sails', routeBasePath: 'sails', sidebarPath: false}]],
};
