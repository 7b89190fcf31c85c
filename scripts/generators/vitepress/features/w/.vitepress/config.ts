import { defineConfig } from 'vitepress'
import { guideItems } from './sidebar'

const name = 'Kites'

export default defineConfig({
  title: `${name} handbook`,
  titleTemplate: ':title',
  base: '/docs/',
  srcDir: './pages',
  outDir: './built',
  srcExclude: ['**/README.md', 'parts/**', '{draft,old}.md'],
  ignoreDeadLinks: true,
  rewrites: {
    'start/first.md': 'welcome.md',
    'packages/:pkg/src/:slug*': ':pkg/:slug*',
  },
  locales: {
    root: { label: 'English', lang: 'en-US' },
    zh: { label: '中文', lang: 'zh-CN', themeConfig: { sidebar: [{ text: '指南', link: '/zh/guide' }] } },
  },
  themeConfig: {
    nav: [
      { text: 'Guide', link: '/guide/' },
      { text: 'Team', link: '/team' },
      { text: 'More', items: [{ text: 'Off', link: 'https://example.org/' }, { text: 'Loose', link: '/loose' }] },
    ],
    sidebar: {
      '/guide/': { base: '/guide/', items: guideItems() },
      '/core/': [{ text: 'Core', link: '/core/api' }],
      '/': [
        { text: 'Start', items: [{ text: 'Hello', link: '/welcome' }, { text: 'Markup', link: '/markup.html#code' }] },
        ...['a'].map((each) => ({ text: each, link: `/computed-${each}` })),
      ],
    },
  },
})
