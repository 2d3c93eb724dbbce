import { Fault } from '@atoll/kit/fault'
import { waitFor } from '@atoll/kit/wait'
import type { EnvdInit } from '../domain/sandboxes/sandbox.ts'
import { askStatus } from './status.ts'

/**
 * Sends a new sandbox's identity to its envd, and retries until envd answers.
 *
 * Threats: another program may have taken the port first. Only the status of the answer is read, and each attempt has a
 * time limit.
 */
export async function initEnvd(
  address: string,
  initToken: string,
  init: EnvdInit,
  options: WaitOptions,
): Promise<void> {
  const body = { ...init, timestamp: new Date().toISOString() }
  await postUntilAnswered(
    { address, initToken, path: '/init', body: JSON.stringify(body) },
    options,
  )
}

/** Waits until envd of a sandbox without an owner has loaded everything it will need. */
export async function prepareEnvd(
  address: string,
  initToken: string,
  options: WaitOptions,
): Promise<void> {
  await postUntilAnswered({ address, initToken, path: '/prepare', body: '' }, options)
}

/** Makes programs in a running sandbox trust a certificate authority. */
export async function trustCertificate(
  address: string,
  initToken: string,
  certificate: string,
): Promise<void> {
  const body = JSON.stringify({ caBundle: certificate })
  const message = { address, initToken, path: '/trust', body }
  const limit = { timeoutMs: 30_000, intervalMs: 50 }
  const status = await waitFor('envd to answer', () => post(message), limit)
  if (status === 404) {
    throw new Fault(
      'invalid',
      'envd_too_old',
      'The envd in this sandbox is too old for header rules: create a new sandbox',
    )
  }
  if (status !== 204) throw refused(message, status)
}

interface WaitOptions {
  readonly isAlive: () => boolean
  readonly timeoutMs?: number
}

interface Message {
  readonly address: string
  readonly initToken: string
  readonly path: string
  readonly body: string
}

async function postUntilAnswered(
  message: Message,
  { isAlive, timeoutMs = 30_000 }: WaitOptions,
): Promise<void> {
  const attempt = async () => {
    if (!isAlive()) {
      throw new Fault('internal', 'sandbox_died', 'The sandbox ended before envd answered')
    }
    const status = await post(message)
    if (status !== undefined && status !== 204) throw refused(message, status)
    return status
  }
  await waitFor('envd to answer', attempt, { timeoutMs, intervalMs: 5 })
}

function refused({ path }: Message, status: number): Fault {
  return new Fault('internal', 'envd_refused', `envd refused POST ${path} with status ${status}`)
}

const attemptMs = 5_000

/** Returns undefined when nothing answers yet. */
function post({ address, initToken, path, body }: Message): Promise<number | undefined> {
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'x-init-token': initToken,
  }
  return askStatus(address, { method: 'POST', path, headers, body, timeoutMs: attemptMs })
}
