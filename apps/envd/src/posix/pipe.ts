import { closeSync, constants, openSync, unlinkSync } from 'node:fs'
import { Socket } from 'node:net'

const { O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants

export interface Pipe {
  readonly ours: Socket
  /** A descriptor to be inherited by the program, and to be closed here once it is. */
  readonly theirs: number
}

export function openOutput(fifo: string): Pipe {
  const { reader, writer } = openBothEnds(fifo, { reader: O_NONBLOCK, writer: 0 })
  return { ours: new Socket({ fd: reader, writable: false }), theirs: writer }
}

export function openInput(fifo: string): Pipe {
  const { reader, writer } = openBothEnds(fifo, { reader: 0, writer: O_NONBLOCK })
  return { ours: new Socket({ fd: writer, readable: false }), theirs: reader }
}

export function discardPipe({ ours, theirs }: Pipe): void {
  ours.destroy()
  closeSync(theirs)
}

/** Only our own end may be non-blocking: few programs expect that of theirs. The name is gone afterwards. */
function openBothEnds(
  fifo: string,
  flags: { readonly reader: number; readonly writer: number },
): { readonly reader: number; readonly writer: number } {
  using meanwhile = new DisposableStack()
  using ends = new DisposableStack()
  meanwhile.defer(() => unlinkSync(fifo))
  // An end opens only when the other is there. This is both, so that neither of the next two has to wait.
  meanwhile.adopt(openSync(fifo, O_RDWR | O_NONBLOCK), closeSync)
  const reader = ends.adopt(openSync(fifo, O_RDONLY | flags.reader), closeSync)
  const writer = ends.adopt(openSync(fifo, O_WRONLY | flags.writer), closeSync)
  ends.move()
  return { reader, writer }
}
