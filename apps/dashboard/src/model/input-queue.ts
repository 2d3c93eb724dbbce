/** Input of a terminal on its way to the sandbox. Large pastes go in pieces, as fast as the program reads them. */
export interface InputQueue {
  push(bytes: Uint8Array): void
  /** The sandbox has taken as many bytes. */
  taken(bytes: number): void
  /** Forgets what was under way, for a new connection. */
  reset(): void
}

const pieceBytes = 32 * 1024
const maxUnderWay = 96 * 1024
/** Input beyond this is refused: a paste by mistake must not fill the page's memory. */
const maxWaiting = 64 * 2 ** 20

export function createInputQueue(send: (bytes: Uint8Array) => void): InputQueue {
  let waiting: Uint8Array[] = []
  let waitingBytes = 0
  let underWay = 0
  const sendWaiting = () => {
    while (underWay < maxUnderWay) {
      const next = waiting.shift()
      if (!next) return
      const piece = next.subarray(0, pieceBytes)
      if (next.length > piece.length) waiting.unshift(next.subarray(pieceBytes))
      waitingBytes -= piece.length
      underWay += piece.length
      send(piece)
    }
  }
  return {
    push(bytes) {
      if (waitingBytes + bytes.length > maxWaiting) return
      waiting.push(bytes)
      waitingBytes += bytes.length
      sendWaiting()
    },
    taken(bytes) {
      underWay = Math.max(0, underWay - bytes)
      sendWaiting()
    },
    reset() {
      waiting = []
      waitingBytes = 0
      underWay = 0
    },
  }
}
