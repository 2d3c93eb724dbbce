import { request } from 'node:http'
import { envdPort } from './port.ts'

export interface Question {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headers?: Readonly<Record<string, string | number>>
  readonly body?: string
  /** Limit for the whole exchange, since headers may arrive one character at a time. */
  readonly timeoutMs: number
}

/** Returns the status of envd's answer and reads nothing else. Undefined when nothing answers. */
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
    // Some failures emit no error: a protocol upgrade offer only closes the connection.
    outgoing.once('close', () => resolve(undefined))
    outgoing.end(body)
  })
}

/** Returns whether anything answers on envd's port. */
export async function isUp(address: string): Promise<boolean> {
  const status = await askStatus(address, { method: 'GET', path: '/health', timeoutMs: 5000 })
  return status !== undefined
}
