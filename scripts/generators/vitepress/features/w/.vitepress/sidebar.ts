import type { DefaultTheme } from 'vitepress'

export function guideItems(): DefaultTheme.SidebarItem[] {
  return [
    {
      text: 'Guide', // a group
      collapsed: false,
      items: [
        { text: 'Deep sky', link: 'deep/' },
        { text: 'One', link: 'one', items: [{ text: 'Numbers', link: 'numbers.md' }] },
      ],
    },
    { text: 'Overview', link: 'overview' },
  ]
}
