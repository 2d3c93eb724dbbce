/**
 * The one form in which names are compared here: lower case, without the dot of the root. Names that a resolver would
 * read as an address are none, so that an approved name cannot stand for an address that nobody approved.
 */
export function toDnsName(text: string): string | undefined {
  const name = text.endsWith('.') ? text.slice(0, -1) : text
  if (name.length > longestName) return undefined
  const labels = name.split('.')
  if (!labels.every((label) => labelForm.test(label))) return undefined
  // inet_aton takes 127.1, 2130706433 and 0x7f000001 for addresses.
  return numberForm.test(labels.at(-1) ?? '') ? undefined : name.toLowerCase()
}

const longestName = 253
const labelForm = /^(?!-)[A-Za-z0-9_-]{1,63}(?<!-)$/
const numberForm = /^(?:\d+|0[xX][0-9A-Fa-f]*)$/
