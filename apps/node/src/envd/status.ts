import { request } from 'node:http'
import { envdPort } from './port.ts'

export interface Question {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headers?: Readonly<Record<string, string | number>>
  readonly body?: string
  /** In all, not for each silence: headers may come one character after the other. */
  readonly timeoutMs: number
}

/** The status of what envd answers, of which nothing else is read; undefined when nobody does. */
export function askStatus(
  address: string,
  { body, timeoutMs, ...question }: Question,
): Promise<number | undefined> {
  return new Promise((resolve) => {
    const outgoing = request({
      ...question,
      host: address,
      port: envdPort,
      agent: false,
      signal: AbortSignal.timeout(timeoutMs),
    })
    outgoing.once('response', (response) => {
      response.destroy()
      resolve(response.statusCode)
    })
    outgoing.on('error', () => resolve(undefined))
    // Not every way out comes with an error: an offer to change the protocol has none.
    outgoing.once('close', () => resolve(undefined))
    outgoing.end(body)
  })
}

/** Whether anything answers in envd's place. */
export async function isUp(address: string): Promise<boolean> {
  const status = await askStatus(address, { method: 'GET', path: '/health', timeoutMs: 5000 })
  return status !== undefined
}
