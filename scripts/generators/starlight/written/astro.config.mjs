import { defineConfig } from 'astro/config';
import starlight from '@astrojs/starlight';

const reference = { label: 'Reference', autogenerate: { directory: 'reference' } };

export default defineConfig({
  site: 'https://lamps.example.com',
  base: '/manual',
  integrations: [
    starlight({
      title: 'Lamps',
      defaultLocale: 'root',
      locales: { root: { label: 'English', lang: 'en' }, fr: { label: 'Français', lang: 'fr' } },
      sidebar: [
        'start',
        {
          label: 'Guides',
          items: [
            { slug: 'guides/second', label: 'The second' },
            { label: 'First', link: '/guides/first/' },
            { label: 'Elsewhere', link: 'https://example.com' },
            { label: 'Deep', collapsed: true, items: ['guides/deep/own-slug'] },
          ],
        },
        reference,
      ],
    }),
  ],
});
