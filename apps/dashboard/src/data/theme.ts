import { computed, effect, signal } from '@preact/signals'

const storageKey = 'atoll-theme'
const stored = localStorage.getItem(storageKey)

/** Empty: as the system says. */
const theme = signal<'' | 'light' | 'dark'>(stored === 'light' || stored === 'dark' ? stored : '')

const darkSystem = matchMedia('(prefers-color-scheme: dark)')
const isSystemDark = signal(darkSystem.matches)
darkSystem.addEventListener('change', ({ matches }) => (isSystemDark.value = matches))

export const isDark = computed(() => (theme.value ? theme.value === 'dark' : isSystemDark.value))

export function applyTheme(): void {
  effect(() => {
    document.documentElement.dataset['theme'] = theme.value
    if (theme.value) localStorage.setItem(storageKey, theme.value)
    else localStorage.removeItem(storageKey)
  })
}

export function switchTheme(): void {
  theme.value = isDark.value ? 'light' : 'dark'
}
