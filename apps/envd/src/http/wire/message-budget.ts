/**
 * Memory for messages that are being read or worked on. Threats: a message needs several times its length while it is
 * decoded, and any number of them may come at once. Together they get no more than the largest one may have; a large
 * one that comes on top of that is told to come again, since input that nobody reads may lie there without end.
 */
import { Code, ConnectError } from '@connectrpc/connect'

export interface MessageBudget {
  /** Undefined when there is no room for it. Room is held until `release`. */
  admit(body: AsyncIterable<Uint8Array>, declaredLength: number | undefined): Admission | undefined
}

export interface Admission {
  readonly body: AsyncIterable<Uint8Array>
  release(): void
}

export function createMessageBudget(limitBytes: number, smallBytes: number): MessageBudget {
  let reservedBytes = 0
  return {
    admit(body, declaredLength) {
      let ownBytes = 0
      const reserve = (length: number) => {
        ownBytes += length
        reservedBytes += length
        return reservedBytes <= limitBytes || reservedBytes === ownBytes || ownBytes <= smallBytes
      }
      const release = () => {
        reservedBytes -= ownBytes
        ownBytes = 0
      }
      if (declaredLength === undefined) return { body: countBytes(body, reserve), release }
      if (reserve(declaredLength)) return { body, release }
      release()
      return undefined
    },
  }
}

/** Who does not say how much it is loses its connection over it: nothing can be answered in the middle of a body. */
async function* countBytes(body: AsyncIterable<Uint8Array>, reserve: (length: number) => boolean) {
  for await (const chunk of body) {
    if (!reserve(chunk.length)) throw new ConnectError(tooMuchInput, Code.ResourceExhausted)
    yield chunk
  }
}

export const tooMuchInput =
  'The message is too large, or too much is under way: send it in smaller pieces, or later'
