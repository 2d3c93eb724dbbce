/**
 * Replacement for the global class `Headers`. The first use of the original loads the HTTP client of Node.js, which
 * envd never needs, and which takes 3 MiB in every sandbox. Differs from the original in two points: an iterator does
 * not see later changes, and names and values must be strings.
 *
 * Threats: names and values come from clients. A name must be a token, and a value must not contain CR, LF or NUL, so
 * that no value can add a header to a response.
 */
export class HeaderMap implements Iterable<[string, string]> {
  readonly [Symbol.toStringTag] = 'Headers'
  /** Values by lower-case name. */
  readonly #values = new Map<string, string[]>()

  constructor(init: HeaderMapInit = {}) {
    for (const pair of isIterable(init) ? init : Object.entries(init)) {
      const [name, value, ...more] = pair
      if (name === undefined || value === undefined || more.length > 0) {
        throw new TypeError('A header must be a pair of name and value')
      }
      this.append(name, value)
    }
  }

  append(name: string, value: string): void {
    const key = toKey(name)
    const text = toValue(value)
    const values = this.#values.get(key)
    if (values) values.push(text)
    else this.#values.set(key, [text])
  }

  set(name: string, value: string): void {
    this.#values.set(toKey(name), [toValue(value)])
  }

  get(name: string): string | null {
    const key = toKey(name)
    const values = this.#values.get(key)
    return values ? join(key, values) : null
  }

  has(name: string): boolean {
    return this.#values.has(toKey(name))
  }

  delete(name: string): void {
    this.#values.delete(toKey(name))
  }

  getSetCookie(): string[] {
    return [...(this.#values.get(setCookie) ?? [])]
  }

  forEach(visit: (value: string, name: string, map: this) => void, thisValue?: unknown): void {
    for (const [name, value] of this) visit.call(thisValue, value, name, this)
  }

  *keys(): Generator<string, undefined> {
    for (const [name] of this) yield name
  }

  *values(): Generator<string, undefined> {
    for (const [, value] of this) yield value
  }

  entries(): Generator<[string, string], undefined> {
    return this[Symbol.iterator]()
  }

  /** Sorted by name. Values of one name are joined, except those of Set-Cookie, which may contain commas. */
  *[Symbol.iterator](): Generator<[string, string], undefined> {
    for (const [name, values] of [...this.#values].toSorted(byName)) {
      if (name !== setCookie) yield [name, join(name, values)]
      else for (const value of values) yield [name, value]
    }
  }
}

type HeaderMapInit =
  | Iterable<Iterable<string> & readonly string[]>
  | Readonly<Record<string, string>>

const setCookie = 'set-cookie'

/** Characters of a token, RFC 9110 section 5.6.2. */
const token = /^[!#$%&'*+\-.^_`|~\w]+$/

function toKey(name: string): string {
  if (token.test(name)) return name.toLowerCase()
  throw new TypeError(`Invalid header name ${JSON.stringify(name)}`)
}

function toValue(value: string): string {
  const text = trim(value)
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    // Each character is sent as one byte.
    if (code === 0 || code === 10 || code === 13 || code > 255) {
      throw new TypeError(`Invalid character in a header value at position ${at}`)
    }
  }
  return text
}

/** Removes spaces, tabs, CR and LF at both ends. A regular expression would take quadratic time. */
function trim(text: string): string {
  let [start, end] = [0, text.length]
  while (start < end && isSpace(text.charCodeAt(start))) start++
  while (end > start && isSpace(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

function isSpace(code: number): boolean {
  return code === 32 || code === 9 || code === 10 || code === 13
}

function join(name: string, values: readonly string[]): string {
  return values.join(name === 'cookie' ? '; ' : ', ')
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1
}

function isIterable(init: HeaderMapInit): init is Iterable<readonly string[] & Iterable<string>> {
  return Symbol.iterator in init
}
