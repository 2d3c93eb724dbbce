/**
 * Verifies signed file URLs. Clients sign with the access token of a sandbox, so the signature identifies the sandbox.
 */
import { createHash, timingSafeEqual } from 'node:crypto'

export interface SignedFile {
  readonly path: string
  readonly username: string
  readonly operation: 'read' | 'write'
  readonly signature: string
  /** Unix seconds as digits. Not checked here: envd rejects expired URLs. */
  readonly expiration: string | undefined
}

/** Returns a function that checks whether a token made the signature. Undefined if the signature is malformed. */
export function signatureMatcher(file: SignedFile): ((token: string) => boolean) | undefined {
  const encoded = /^v1_([A-Za-z0-9+/]{43})$/.exec(file.signature)?.[1]
  if (encoded === undefined) return undefined
  const expected = Buffer.from(encoded, 'base64')
  // Hash the part before the token only once: a long path must not be hashed again for every sandbox.
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
