/** Text that is safe to put into a page: made by `html` alone, which escapes whatever it did not make itself. */
export interface Html {
  readonly html: string
}

type Content = Html | readonly Html[] | string | number | undefined

export function html(strings: TemplateStringsArray, ...values: readonly Content[]): Html {
  return { html: String.raw({ raw: strings }, ...values.map(toText)) }
}

function toText(value: Content): string {
  if (value === undefined) return ''
  if (typeof value === 'string' || typeof value === 'number') return escapeText(String(value))
  return 'html' in value ? value.html : value.map((one) => one.html).join('')
}

function escapeText(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
