import { Fault } from '@atoll/kit/fault'

/** PostgreSQL cannot store NUL, so SQLite stores reject it, too. */
export function unstorableText(cause?: unknown): Fault {
  return new Fault(
    'invalid',
    'unstorable_text',
    'The character U+0000 is not allowed in text: remove it from names, ids and metadata',
    { cause },
  )
}
