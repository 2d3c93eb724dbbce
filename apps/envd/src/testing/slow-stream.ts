/** Client that reads the first event of a stream and then pauses until `rest` is called, to test backpressure. */
import { once } from 'node:events'
import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { envelope, parseEnvelopes } from './envelopes.ts'
import { accessToken } from './running-envd.ts'

interface WireEvent {
  readonly start?: { readonly pid: number }
  readonly data?: { readonly stdout: string }
  readonly end?: { readonly exitCode?: number }
}

export interface SlowStream {
  readonly pid: number
  rest(): Promise<WireEvent[]>
  leave(): void
}

export async function openSlowly(
  envd: { readonly url: string },
  method: 'Start' | 'Connect',
  message: object,
): Promise<SlowStream> {
  const call = request(`${envd.url}/process.Process/${method}`, {
    method: 'POST',
    agent: false,
    headers: {
      'content-type': 'application/connect+json',
      'connect-protocol-version': '1',
      'x-access-token': accessToken,
    },
  })
  call.on('error', () => {})
  call.end(envelope(message))
  const response = await new Promise<IncomingMessage>((resolve) => call.once('response', resolve))
  response.on('error', () => {})
  await once(response, 'readable')
  const first: Buffer = response.read()
  const pid = toEvents(first).find(({ start }) => start)?.start?.pid
  if (pid === undefined) throw new Error(`no start in ${first.toString()}`)
  return {
    pid,
    async rest() {
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(chunk)
      return toEvents(Buffer.concat(chunks))
    },
    leave: () => void call.destroy(),
  }
}

function toEvents(bytes: Buffer): WireEvent[] {
  return parseEnvelopes(bytes)
    .filter(({ flags }) => flags === 0)
    .map(({ text }) => JSON.parse(text).event)
}
