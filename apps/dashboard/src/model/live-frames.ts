/** Binary messages of the live connection: the number of a channel in four bytes, then bytes of a terminal. */
const numberBytes = 4

export function toFrame(number: number, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(numberBytes + bytes.length)
  new DataView(frame.buffer).setUint32(0, number)
  frame.set(bytes, numberBytes)
  return frame
}

export function fromFrame(frame: ArrayBuffer): { number: number; bytes: Uint8Array } {
  return {
    number: new DataView(frame).getUint32(0),
    bytes: new Uint8Array(frame, numberBytes),
  }
}
