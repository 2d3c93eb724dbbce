/** Headers of a form part. */
export interface PartHeaders {
  readonly name: string | undefined
  /** File name as sent, including folders. */
  readonly filename: string | undefined
}

/** Skips lines that are not headers. */
export function parsePartHeaders(head: string): PartHeaders {
  const line = head.split('\r\n').find((each) => /^content-disposition\s*:/i.test(each))
  const value = line?.slice(line.indexOf(':') + 1).trim() ?? ''
  if (!/^form-data\s*(?:;|$)/i.test(value)) return { name: undefined, filename: undefined }
  const parameters = parseParameters(value)
  const extended = parameters.get('filename*')
  return {
    name: parameters.get('name'),
    filename: (extended && decodeExtended(extended)) ?? parameters.get('filename'),
  }
}

/** Parses `name=value` pairs after the first semicolon. Names are lower-cased; the first of a name wins. */
export function parseParameters(value: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const [, name = '', quoted, bare] of value.matchAll(parameter)) {
    const key = name.toLowerCase()
    // A backslash escapes only quotes and backslashes: some clients send Windows paths unescaped.
    const text = quoted?.replaceAll(/\\(["\\])/g, '$1') ?? bare ?? ''
    if (!found.has(key)) found.set(key, text)
  }
  return found
}

const parameter =
  /;\s*([\w!#$%&'*+.^`|~-]+)\s*=\s*(?:"((?:\\["\\]|[^"\\]|\\(?!["\\]))*)"|([^\s;"]*))/g

/** Decodes RFC 8187. Returns undefined if the value is malformed or not UTF-8. */
function decodeExtended(value: string): string | undefined {
  const encoded = /^utf-8'[^']*'(.*)$/i.exec(value)?.[1]
  if (encoded === undefined) return undefined
  try {
    return decodeURIComponent(encoded)
  } catch {
    return undefined
  }
}
