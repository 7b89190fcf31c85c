import { defineConfig } from 'astro/config';
import starlight from '@astrojs/starlight';

export default defineConfig({
  site: 'https://pots.example.com',
  integrations: [starlight({ title: 'Pots', defaultLocale: 'en', locales: { en: { label: 'English' }, de: { label: 'Deutsch' } } })],
});
