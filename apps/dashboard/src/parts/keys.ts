/** Keys of pages. A page registers what its keys do while it is shown. Keys typed into a field are never taken. */
import { useLayoutEffect } from 'preact/hooks'

type Handler = (event: KeyboardEvent) => void

const handlers = new Map<string, Handler[]>()

/**
 * `mod+k` is ⌘K or Ctrl+K. Registers with the drawing, not after it: the key after a fast one must find the handler of the
 * new state.
 */
export function useKey(key: string, handler: Handler): void {
  useLayoutEffect(() => {
    handlers.set(key, [...(handlers.get(key) ?? []), handler])
    return () => {
      handlers.set(
        key,
        (handlers.get(key) ?? []).filter((known) => known !== handler),
      )
    }
  })
}

export function listenForKeys(): void {
  document.addEventListener('keydown', (event) => {
    const isCommand = (event.metaKey || event.ctrlKey) && !event.altKey
    if (!isCommand && (isTyping(event.target) || event.altKey)) return
    if (isCommand && event.target instanceof Element && event.target.closest('.xterm')) return
    const name = isCommand ? `mod+${event.key.toLowerCase()}` : event.key
    const handler = handlers.get(name)?.at(-1)
    if (!handler || (document.querySelector('dialog[open]') && name !== 'mod+k')) return
    event.preventDefault()
    handler(event)
  })
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof Element &&
    target.matches('input:not([type=checkbox]), textarea, select, [contenteditable]')
  )
}
