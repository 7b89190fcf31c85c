/** @type {import('vitepress').LocaleSpecificConfig} */
export const de = { lang: 'de-DE', themeConfig: { sidebar: { '/de/': [{ text: 'Anfang', link: '/de/start' }] } } }
