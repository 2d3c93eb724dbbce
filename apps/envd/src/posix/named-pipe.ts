import { closeSync, constants, openSync, unlinkSync } from 'node:fs'
import { Socket } from 'node:net'
import { readPipe } from './pipe-reader.ts'
import type { PipeReader } from './pipe-reader.ts'

const { O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants

/** envd's end of a named pipe; the program's end is opened by name. Only envd's end is non-blocking. */
export interface Pipe<Stream> {
  readonly name: string
  /** Call when the other end is open: a reader that starts earlier sees end-of-file. */
  connect(): Stream
  /** Closes the pipe; use instead of `connect`. */
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

/** A pipe without a reader cannot be opened for writing, so envd holds it open for reading until the program does. */
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

/** The name may be gone if something emptied the folder; the open pipe does not need it. */
function removeName(name: string): void {
  try {
    unlinkSync(name)
  } catch {}
}
