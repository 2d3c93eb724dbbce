/**
 * Memory budget for messages that are being read or processed. Threats: decoding takes several times the size of a
 * message, and any number may arrive at once. Together they get the size limit of one message. Further large
 * messages are rejected rather than queued, because input to a program that does not read may wait forever.
 */
import { Code, ConnectError } from '@connectrpc/connect'

export interface MessageBudget {
  /** Reserves memory until `release`. Returns undefined if the budget is exhausted. */
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

/**
 * Counts a body of unknown length. Past the budget the connection is closed, because no response can be sent in the
 * middle of a body.
 */
async function* countBytes(body: AsyncIterable<Uint8Array>, reserve: (length: number) => boolean) {
  for await (const chunk of body) {
    if (!reserve(chunk.length)) throw new ConnectError(tooMuchInput, Code.ResourceExhausted)
    yield chunk
  }
}

export const tooMuchInput =
  'The message is too large, or too many are in progress. Send smaller messages, or retry later.'
