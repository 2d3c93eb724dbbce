/** Escaped HTML. Only `html` creates it, and escapes every value that is not `Html`. */
export interface Html {
  readonly html: string
}

type Content = Html | readonly Html[] | string | number | undefined

export function html(strings: TemplateStringsArray, ...values: readonly Content[]): Html {
  return { html: String.raw({ raw: strings }, ...values.map(toText)) }
}

/** Renders text between backticks as code. */
export function prose(text: string): Html {
  const parts = text.split('`')
  return html`${parts.map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`))}`
}

function toText(value: Content): string {
  if (value === undefined) return ''
  if (typeof value === 'string' || typeof value === 'number') return escapeText(String(value))
  return 'html' in value ? value.html : value.map((one) => one.html).join('')
}

function escapeText(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
