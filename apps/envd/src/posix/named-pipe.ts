import { closeSync, constants, openSync, unlinkSync } from 'node:fs'
import { Socket } from 'node:net'
import { readPipe } from './pipe-reader.ts'
import type { PipeReader } from './pipe-reader.ts'

const { O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants

/** Our end of a named pipe, whose other end is about to be opened by its name. Only ours is non-blocking. */
export interface Pipe<ProcessEnd> {
  readonly name: string
  /** Called when the other end is open: a reader that came earlier would find the end of the file. */
  connect(): ProcessEnd
  /** Instead of `connect`. */
  discard(): void
}

export function discardPipe(pipe: Pipe<unknown>): void {
  pipe.discard()
}

export function openOutput(name: string): Pipe<PipeReader> {
  const reader = openSync(name, O_RDONLY | O_NONBLOCK)
  return {
    name,
    connect() {
      removeName(name)
      return readPipe(reader)
    },
    discard: () => closeAll(name, reader),
  }
}

/** A writer cannot open a pipe that nobody reads: until the program does, we are the reader. */
export function openInput(name: string): Pipe<Socket> {
  using opened = new DisposableStack()
  const both = opened.adopt(openSync(name, O_RDWR | O_NONBLOCK), closeSync)
  const writer = openSync(name, O_WRONLY | O_NONBLOCK)
  opened.move()
  return {
    name,
    connect() {
      closeAll(name, both)
      return new Socket({ fd: writer, readable: false })
    },
    discard: () => closeAll(name, both, writer),
  }
}

function closeAll(name: string, ...descriptors: readonly number[]): void {
  for (const fd of descriptors) closeSync(fd)
  removeName(name)
}

/** Somebody may have emptied the folder meanwhile, which no longer matters to this pipe. */
function removeName(name: string): void {
  try {
    unlinkSync(name)
  } catch {}
}
