import { en } from './en.mjs'
import { de } from './de.mjs'

export default {
  cleanUrls: true,
  titleTemplate: ':title',
  ignoreDeadLinks: true,
  locales: { root: { label: 'English', ...en }, de: { label: 'Deutsch', ...de } },
}
