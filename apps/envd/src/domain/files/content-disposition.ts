/** Builds an `inline` header with the file name, in the extended notation of RFC 2231 if the name is not ASCII. */
export function inlineDisposition(name: string): string {
  if (/^[\w!#$&+.^`|~-]+$/.test(name)) return `inline; filename=${name}`
  if (/^[\x20-\x7e]*$/.test(name)) {
    return `inline; filename="${name.replaceAll(/[\\"]/g, String.raw`\$&`)}"`
  }
  return `inline; filename*=utf-8''${encodeExtended(name)}`
}

/** toWellFormed guards encodeURIComponent, which throws on lone surrogates. */
function encodeExtended(name: string): string {
  const encoded = encodeURIComponent(name.toWellFormed())
  return encoded.replaceAll(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}
