/** Signed URLs of files: made by clients with the token of a sandbox, which is therefore known by its signature. */
import { createHash, timingSafeEqual } from 'node:crypto'

export interface SignedFile {
  readonly path: string
  readonly username: string
  readonly operation: 'read' | 'write'
  readonly signature: string
  /** Seconds since 1970, as digits. Whether it is over is for envd to say. */
  readonly expiration: string | undefined
}

/** Tells whether a token made this signature. Undefined for what can be no signature at all. */
export function signatureMatcher(file: SignedFile): ((token: string) => boolean) | undefined {
  const encoded = /^v1_([A-Za-z0-9+/]{43})$/.exec(file.signature)?.[1]
  if (encoded === undefined) return undefined
  const expected = Buffer.from(encoded, 'base64')
  // All that comes before the token is digested once: a long path must not cost its length for every sandbox.
  const begun = createHash('sha256').update(`${file.path}:${file.operation}:${file.username}:`)
  const rest = file.expiration === undefined ? '' : `:${file.expiration}`
  return (token) =>
    timingSafeEqual(
      begun
        .copy()
        .update(token + rest)
        .digest(),
      expected,
    )
}
