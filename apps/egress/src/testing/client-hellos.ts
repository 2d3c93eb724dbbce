import { Duplex } from 'node:stream'
import { connect, type ConnectionOptions } from 'node:tls'

/** Captures the ClientHello that OpenSSL sends with these options. */
export async function captureHello(options: ConnectionOptions): Promise<Buffer> {
  const { promise, resolve } = Promise.withResolvers<Buffer>()
  const wire = new Duplex({
    read() {},
    // OpenSSL writes up to 16 KiB in one call.
    write(piece: Buffer, _encoding, done) {
      resolve(piece)
      done()
    },
  })
  const client = connect({ socket: wire, ...options })
  client.on('error', () => {})
  const hello = await promise
  client.destroy()
  return hello
}

/** Splits the message into records of at most `size` bytes. */
export function inRecords(hello: Buffer, size: number): Buffer {
  const message = messageOf(hello)
  const records: Buffer[] = []
  for (let at = 0; at < message.length; at += size) {
    records.push(record(message.subarray(at, at + size)))
  }
  return Buffer.concat(records)
}

/** Handshake message of a hello that is a single record. */
export function messageOf(hello: Buffer): Buffer {
  return hello.subarray(5)
}

export function record(fragment: Buffer): Buffer {
  return Buffer.concat([Buffer.from([22, 3, 1]), number(2, fragment.length), fragment])
}

/** Builds a ClientHello with only these extensions. */
export function helloWith(...extensions: readonly Buffer[]): Buffer {
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32, 7),
    vector(1, Buffer.alloc(0)),
    vector(2, Buffer.from([0x13, 0x01])),
    vector(1, Buffer.from([0])),
    vector(2, Buffer.concat(extensions)),
  ])
  return record(Buffer.concat([Buffer.from([1]), vector(3, body)]))
}

export function extension(type: number, data: Buffer): Buffer {
  return Buffer.concat([number(2, type), vector(2, data)])
}

/** Builds the SNI extension from names and their types. */
export function serverNames(...names: readonly (readonly [type: number, name: string])[]): Buffer {
  const entries = names.map(([type, name]) =>
    Buffer.concat([number(1, type), vector(2, Buffer.from(name, 'latin1'))]),
  )
  return extension(0, vector(2, Buffer.concat(entries)))
}

function vector(width: number, content: Buffer): Buffer {
  return Buffer.concat([number(width, content.length), content])
}

function number(width: number, value: number): Buffer {
  const bytes = Buffer.alloc(width)
  bytes.writeUIntBE(value, 0, width)
  return bytes
}
