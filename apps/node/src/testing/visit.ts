/**
 * Makes one request from a sandbox's network namespace and prints the response or the error as a line of JSON.
 *
 *   node visit.ts http|tls ADDRESS NAME
 *   node visit.ts name SERVER NAME
 */
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

const [kind = '', address = '', name = ''] = process.argv.slice(2)

const result = await visit().then(
  (said) => ({ said }),
  (error: NodeJS.ErrnoException) => ({ error: error.code ?? error.message }),
)
process.stdout.write(JSON.stringify(result))
process.exit(0)

async function visit(): Promise<string> {
  if (kind === 'name') {
    const resolver = new Resolver({ timeout: 30_000, tries: 1 })
    resolver.setServers([address])
    return (await resolver.resolve4(name)).join()
  }
  if (kind === 'tls') {
    const psk = { psk: Buffer.from('secret'), identity: 'sandbox' }
    const options = { ciphers: 'PSK', maxVersion: 'TLSv1.2', pskCallback: () => psk } as const
    const server = name === '' ? {} : { servername: name }
    return await readAnswer(
      connectTls({
        host: address,
        port: 443,
        ...options,
        ...server,
        checkServerIdentity: () => undefined,
      }),
    )
  }
  const socket = connect({ host: address, port: 80 })
  socket.write(`GET / HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`)
  const answer = await readAnswer(socket)
  return answer.slice(answer.indexOf('\r\n\r\n') + 4)
}

async function readAnswer(socket: Socket): Promise<string> {
  let heard = ''
  socket.setEncoding('utf8').on('data', (text: string) => (heard += text))
  await once(socket, 'close')
  if (heard === '') throw Object.assign(new Error('nothing was said'), { code: 'SILENT' })
  return heard
}
