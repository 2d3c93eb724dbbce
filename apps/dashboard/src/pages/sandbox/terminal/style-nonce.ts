let isAllowed = false

/**
 * Gives style elements of the terminal library the nonce of the page's policy, which it does not know. Nothing else on
 * the page creates style elements.
 */
export function allowTerminalStyles(): void {
  const nonce = document.querySelector<HTMLMetaElement>('meta[name=csp-nonce]')?.nonce
  if (isAllowed || !nonce) return
  isAllowed = true
  const create = document.createElement.bind(document)
  document.createElement = (name: string, options?: ElementCreationOptions) => {
    const element = create(name, options)
    if (name === 'style') element.nonce = nonce
    return element
  }
}
