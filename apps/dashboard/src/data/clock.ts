import { signal } from '@preact/signals'

/** The present, updated once a second for ages and countdowns. */
export const now = signal(Date.now())

setInterval(() => {
  if (document.visibilityState === 'visible') now.value = Date.now()
}, 1000)
