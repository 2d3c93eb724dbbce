/** `inline` under the name of the file; with the extended notation of RFC 2231 where the name is not ASCII. */
export function inlineDisposition(name: string): string {
  if (/^[\w!#$&+.^`|~-]+$/.test(name)) return `inline; filename=${name}`
  if (/^[\x20-\x7e]*$/.test(name)) {
    return `inline; filename="${name.replaceAll(/[\\"]/g, String.raw`\$&`)}"`
  }
  return `inline; filename*=utf-8''${encodeExtended(name)}`
}

/** Names may hold bytes that are no UTF-8; they were replaced when the name was read. */
function encodeExtended(name: string): string {
  const encoded = encodeURIComponent(name.toWellFormed())
  return encoded.replaceAll(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}
