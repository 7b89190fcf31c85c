const api = [{ text: 'Calls', link: '/api/calls' }, { text: 'Types', link: '/api/types.md' }]
export const en = {
  lang: 'en',
  themeConfig: { sidebar: [{ text: 'Start', link: '/start' }, { text: 'API', items: api }] },
}
