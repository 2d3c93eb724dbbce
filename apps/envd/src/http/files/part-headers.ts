/** Headers of a part of a form. */
export interface PartHeaders {
  readonly name: string | undefined
  /** With all its folders, as it was sent. */
  readonly filename: string | undefined
}

/** Lines that are no headers are passed over. */
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

/** `name=value` pairs after the first semicolon, the names in lower case. The first of a name counts. */
export function parseParameters(value: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const [, name = '', quoted, bare] of value.matchAll(parameter)) {
    const key = name.toLowerCase()
    // A backslash before anything else is one: some clients send paths of Windows as they are.
    const text = quoted?.replaceAll(/\\(["\\])/g, '$1') ?? bare ?? ''
    if (!found.has(key)) found.set(key, text)
  }
  return found
}

const parameter =
  /;\s*([\w!#$%&'*+.^`|~-]+)\s*=\s*(?:"((?:\\["\\]|[^"\\]|\\(?!["\\]))*)"|([^\s;"]*))/g

/** RFC 8187. Undefined for what is not in UTF-8 or not well-formed. */
function decodeExtended(value: string): string | undefined {
  const encoded = /^utf-8'[^']*'(.*)$/i.exec(value)?.[1]
  if (encoded === undefined) return undefined
  try {
    return decodeURIComponent(encoded)
  } catch {
    return undefined
  }
}
