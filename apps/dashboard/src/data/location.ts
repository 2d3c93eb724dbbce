import { computed, signal } from '@preact/signals'
import { parseRoute } from '../model/route.ts'

/** The address of the page. Links with a path are followed without a reload. */
const current = signal({ path: location.pathname, search: location.search })

export const route = computed(() => parseRoute(current.value.path))
export const query = computed(() => new URLSearchParams(current.value.search))

export function navigate(to: string, options: { readonly replace?: boolean } = {}): void {
  if (options.replace) history.replaceState(null, '', to)
  else history.pushState(null, '', to)
  read()
  if (!options.replace) document.querySelector('main')?.scrollTo(0, 0)
}

function read(): void {
  current.value = { path: location.pathname, search: location.search }
}

export function followLinks(): void {
  addEventListener('popstate', read)
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey
    if (!link || !isPlain || event.defaultPrevented || link.target || link.hasAttribute('download'))
      return
    if (link.origin !== location.origin || link.pathname.startsWith('/bff/')) return
    event.preventDefault()
    navigate(`${link.pathname}${link.search}`)
  })
}
