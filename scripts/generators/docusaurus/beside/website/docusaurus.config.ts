import {resolve} from 'path';
import type {Options, ThemeConfig} from '@docusaurus/preset-classic';
import type {Config} from '@docusaurus/types';

const base = '/project/';

const config: Config = {
  title: 'Drums',
  url: 'https://drums.example.com',
  baseUrl: base,
  trailingSlash: true,
  onBrokenLinks: 'warn',
  themeConfig: {
    navbar: {items: [{label: 'Start', to: 'start', position: 'right'}, {type: 'doc', docId: 'usage/index', label: 'Use'}]},
  } satisfies ThemeConfig,
  presets: [
    [
      '@docusaurus/preset-classic',
      {
        docs: {
          path: '../docs',
          routeBasePath: '/',
          sidebarPath: require.resolve('./sidebars.json'),
          include: ['{usage,parts}/**/*.{md,mdx}', 'FAQ.md', 'start.md'],
          editUrl: 'https://example.com/edit/main/website',
        },
        blog: false,
      } satisfies Options,
    ],
  ],
};

export default config;
