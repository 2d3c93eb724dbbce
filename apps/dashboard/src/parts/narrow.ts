import { signal } from '@preact/signals'

/** The width below which the styles lay pages out for a phone. */
const media = matchMedia('(max-width: 760px)')
const isNarrow = signal(media.matches)
media.addEventListener('change', () => (isNarrow.value = media.matches))

export function useIsNarrow(): boolean {
  return isNarrow.value
}
