/** Words of a Dockerfile: splitting at blanks outside of quotes, and expansion of quotes and variables. */

export function splitWords(text: string, escape: string): string[] {
  const words: string[] = []
  let word = ''
  let quote = ''
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at)
    if (quote === '' && /\s/.test(char)) {
      if (word !== '') words.push(word)
      word = ''
      continue
    }
    word += char
    if (char === escape && quote !== "'") word += text.charAt((at += 1))
    else if (char === quote) quote = ''
    else if (quote === '' && (char === '"' || char === "'")) quote = char
  }
  return word === '' ? words : [...words, word]
}

export interface Expansion {
  readonly escape: string
  /** Value of a variable, or undefined if the file does not set it. */
  lookup(name: string): string | undefined
  /** Text for a reference to a variable that the file does not set. */
  unknown(name: string): string
  /** Escapes a `$` of the result where the server expands it once more. */
  literal(text: string): string
}

/** Throws an `Error` with the reason if the word cannot be expanded. */
export function expandWord(word: string, expansion: Expansion): string {
  const { escape, literal } = expansion
  let result = ''
  let isQuoted = false
  for (let at = 0; at < word.length; at += 1) {
    const char = word.charAt(at)
    if (char === "'" && !isQuoted) {
      const end = word.indexOf("'", at + 1)
      if (end === -1) throw new Error('a single quote is not closed')
      result += literal(word.slice(at + 1, end))
      at = end
    } else if (char === '"') {
      isQuoted = !isQuoted
    } else if (char === escape) {
      const next = word.charAt((at += 1))
      const isEscaped = !isQuoted || next === '"' || next === '$' || next === escape
      result += literal(isEscaped ? next : char + next)
    } else if (char === '$') {
      const reference = readReference(word, at)
      result += reference ? replace(reference, expansion) : literal('$')
      at += reference ? reference.length - 1 : 0
    } else {
      result += char
    }
  }
  if (isQuoted) throw new Error('a double quote is not closed')
  return result
}

interface Reference {
  readonly name: string
  readonly operator: string
  readonly word: string
  readonly length: number
}

function readReference(word: string, at: number): Reference | undefined {
  const pattern = /\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:?[-+])([^{}]*))?\})/y
  pattern.lastIndex = at
  const match = pattern.exec(word)
  if (match) {
    const [whole, plain = '', braced = '', operator = '', nested = ''] = match
    return { name: plain || braced, operator, word: nested, length: whole.length }
  }
  if (word.charAt(at + 1) !== '{') return undefined
  throw new Error(
    `${word.slice(at, at + 40)} is not supported: use \${name}, \${name:-value} or \${name:+value}`,
  )
}

function replace({ name, operator, word }: Reference, expansion: Expansion): string {
  const value = expansion.lookup(name)
  if (operator === '') {
    return value === undefined ? expansion.unknown(name) : expansion.literal(value)
  }
  const isSet = operator.startsWith(':') ? Boolean(value) : value !== undefined
  if (operator.endsWith('+')) return isSet ? expandWord(word, expansion) : ''
  return isSet ? expansion.literal(value ?? '') : expandWord(word, expansion)
}
