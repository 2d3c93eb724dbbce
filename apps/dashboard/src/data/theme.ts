import { effect, signal } from '@preact/signals'

const storageKey = 'atoll-theme'
const stored = localStorage.getItem(storageKey)

/** Empty: as the system says. */
const theme = signal<'' | 'light' | 'dark'>(stored === 'light' || stored === 'dark' ? stored : '')

function isDark(): boolean {
  if (theme.value) return theme.value === 'dark'
  return matchMedia('(prefers-color-scheme: dark)').matches
}

export function applyTheme(): void {
  effect(() => {
    document.documentElement.dataset['theme'] = theme.value
    if (theme.value) localStorage.setItem(storageKey, theme.value)
    else localStorage.removeItem(storageKey)
  })
}

export function switchTheme(): void {
  theme.value = isDark() ? 'light' : 'dark'
}
