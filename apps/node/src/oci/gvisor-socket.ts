/**
 * Calls the kernel of a gVisor sandbox through its control socket, as runsc does (gVisor 20240729: pkg/urpc). A call
 * takes a millisecond; a runsc command takes 30 to 40 of processor time before it makes the same call.
 *
 * Threats: a program that has taken over the kernel controls the answers. They are limited in size and time.
 */
import { Socket } from 'node:net'
import { Fault } from '@atoll/kit/fault'
import koffi from 'koffi'
import { z } from 'zod'

export interface SocketCall {
  readonly method: string
  readonly arg?: unknown
  /** Descriptors that the kernel of the sandbox gets a copy of. */
  readonly descriptors?: readonly number[]
  readonly timeoutMs?: number
}

/** Returns once the kernel reports success. Throws a `runtime_failed` fault with its error text. */
export async function callSandbox(path: string, call: SocketCall): Promise<void> {
  const { method, arg = null, descriptors = [], timeoutMs = 60_000 } = call
  const socket = send(path, JSON.stringify({ method, arg }), descriptors)
  const signal = AbortSignal.timeout(timeoutMs)
  const stop = () => socket.destroy(failed(`${method} did not finish in time`))
  signal.addEventListener('abort', stop)
  try {
    const { success, err } = parse(await readAll(socket))
    // A failed checkpoint dumps the whole object; the beginning names the problem.
    if (!success) throw failed(`${method} failed: ${err.slice(0, 600)}`)
  } finally {
    signal.removeEventListener('abort', stop)
    socket.destroy()
  }
}

async function readAll(socket: Socket): Promise<string> {
  let text = ''
  for await (const chunk of socket) {
    text += String(chunk)
    if (text.length > maxAnswerChars) throw failed('the answer is too long')
  }
  return text
}

const answerSchema = z.object({ success: z.boolean(), err: z.string() })

function parse(text: string): z.infer<typeof answerSchema> {
  try {
    return answerSchema.parse(JSON.parse(text))
  } catch {
    return { success: false, err: 'the connection ended without an answer' }
  }
}

function failed(problem: string): Fault {
  return new Fault('internal', 'runtime_failed', `The kernel of the sandbox: ${problem}`)
}

/** Connects and sends without blocking: a Unix socket takes a message of this size at once, or refuses. */
function send(path: string, message: string, descriptors: readonly number[]): Socket {
  const { socket, connect, sendmsg, close } = lazyLibc()
  const fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
  if (fd < 0) throw failed(`no socket (errno ${koffi.errno()})`)
  const address = addressOf(path)
  const body = Buffer.from(message)
  const control = controlMessage(descriptors)
  const head = {
    ...{ name: null, nameLength: 0, flags: 0 },
    ...{ vector: { base: body, length: body.length }, vectorLength: 1 },
    ...{ control: control.length > 0 ? control : null, controlLength: control.length },
  }
  const isSent =
    connect(fd, address, address.length) === 0 && sendmsg(fd, head, MSG_NOSIGNAL) === body.length
  if (!isSent) {
    const errno = koffi.errno()
    close(fd)
    throw failed(`its control socket does not answer (errno ${errno})`)
  }
  // Half-closed, so that the kernel closes the connection after its answer.
  return new Socket({ fd, readable: true, writable: true, allowHalfOpen: true }).end()
}

function addressOf(path: string): Buffer {
  const address = Buffer.alloc(2 + 108)
  if (Buffer.byteLength(path) >= 108) throw failed('the path of its control socket is too long')
  address.writeUInt16LE(AF_UNIX)
  address.write(path, 2)
  return address
}

/** Builds a message of type SCM_RIGHTS (unix(7)) for 64-bit Linux. */
function controlMessage(descriptors: readonly number[]): Buffer {
  if (descriptors.length === 0) return Buffer.alloc(0)
  const length = 16 + 4 * descriptors.length
  const message = Buffer.alloc(Math.ceil(length / 8) * 8)
  message.writeBigUInt64LE(BigInt(length))
  message.writeInt32LE(SOL_SOCKET, 8)
  message.writeInt32LE(SCM_RIGHTS, 12)
  for (const [index, fd] of descriptors.entries()) message.writeInt32LE(fd, 16 + 4 * index)
  return message
}

const maxAnswerChars = 1024 * 1024
const AF_UNIX = 1
const SOCK_STREAM = 1
const SOCK_NONBLOCK = 0o4000
const SOCK_CLOEXEC = 0o2000000
const SOL_SOCKET = 1
const SCM_RIGHTS = 1
const MSG_NOSIGNAL = 0x4000

let libc: ReturnType<typeof loadLibc> | undefined
const lazyLibc = () => (libc ??= loadLibc())

function loadLibc() {
  const library = koffi.load('libc.so.6')
  koffi.struct('iovec', { base: 'void *', length: 'size_t' })
  koffi.struct('msghdr', {
    name: 'void *',
    nameLength: 'uint32_t',
    vector: 'iovec *',
    vectorLength: 'size_t',
    control: 'void *',
    controlLength: 'size_t',
    flags: 'int',
  })
  return {
    socket: library.func('int socket(int, int, int)'),
    connect: library.func('int connect(int, const void *, uint32_t)'),
    sendmsg: library.func('long sendmsg(int, const msghdr *, int)'),
    close: library.func('int close(int)'),
  }
}
