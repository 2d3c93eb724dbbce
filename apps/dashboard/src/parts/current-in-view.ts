import { useEffect, useRef } from 'preact/hooks'
import type { RefObject } from 'preact'

/** Scrolls the link of the current page into view, in a row of links that is wider than a phone. */
export function useCurrentInView(current: string): RefObject<HTMLElement> {
  const row = useRef<HTMLElement>(null)
  useEffect(() => {
    const element = row.current
    if (!element) return undefined
    const observer = new ResizeObserver(() => center(element))
    observer.observe(element)
    return () => observer.disconnect()
  }, [current])
  return row
}

/** Not by scrollIntoView, which would scroll the page too. */
function center(row: HTMLElement): void {
  const link = row.querySelector('[aria-current]')
  if (!(link instanceof HTMLElement)) return
  const middle = link.offsetLeft - row.offsetLeft + link.offsetWidth / 2
  row.scrollLeft = middle - row.clientWidth / 2
}
