import { request } from 'node:http'
import { Fault } from '@atoll/kit/fault'
import { waitFor } from '@atoll/kit/wait'
import type { Introduction } from '../domain/sandbox.ts'

/**
 * Tells a new sandbox's envd who it is, as soon as it answers. Threats: the other end may be anything that took the
 * port first; of its answer only the status is read, and each try has a time limit.
 */
export async function introduceEnvd(
  address: string,
  initToken: string,
  introduction: Introduction,
  options: { readonly isAlive: () => boolean; readonly timeoutMs?: number },
): Promise<void> {
  const body = JSON.stringify({
    ...introduction,
    defaultUser: 'user',
    timestamp: new Date().toISOString(),
  })
  const attempt = async () => {
    if (!options.isAlive()) {
      throw new Fault('internal', 'sandbox_died', 'The sandbox ended before envd answered')
    }
    const status = await post(address, initToken, body)
    if (status !== undefined && status !== 204) {
      throw new Fault(
        'internal',
        'envd_refused',
        `envd refused its introduction with status ${status}`,
      )
    }
    return status
  }
  await waitFor('envd to answer', attempt, {
    timeoutMs: options.timeoutMs ?? 30_000,
    intervalMs: 10,
  })
}

const envdPort = 49983

/** Undefined when nobody answers yet. */
function post(host: string, token: string, body: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const outgoing = request({
      host,
      port: envdPort,
      path: '/init',
      method: 'POST',
      agent: false,
      timeout: 5000,
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'x-init-token': token,
      },
    })
    outgoing.once('response', (response) => {
      response.destroy()
      resolve(response.statusCode)
    })
    outgoing.once('timeout', () => outgoing.destroy())
    outgoing.once('error', () => resolve(undefined))
    outgoing.end(body)
  })
}
