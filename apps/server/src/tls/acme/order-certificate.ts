import { readFile } from 'node:fs/promises'
import { Agent, get } from 'node:https'
import { rootCertificates } from 'node:tls'
import { createKeys, toPem } from '@atoll/kit/certificates/x509'
import type { CertificatePair } from '../check-certificate.ts'
import type { AcmeSettings } from './acme-settings.ts'
import type { Challenge, ChallengeResponder } from './challenges.ts'

const requestLimitMs = 30_000
const maxResponseBytes = 1024 * 1024
/** Limit for the whole order, with the time that DNS takes. */
const orderLimitMs = 20 * 60_000
/** How often and how patiently the state of an order is read. */
const polling = { backoffAttempts: 15, backoffMin: 1_000, backoffMax: 15_000 }

/** Orders one certificate with a new key. Makes no second attempt: the caller decides when to try again. */
export async function orderCertificate(
  settings: AcmeSettings,
  parts: {
    readonly accountKey: string
    readonly responder: ChallengeResponder
    readonly signal: AbortSignal
  },
): Promise<CertificatePair> {
  const { directoryUrl, email, caFile, hostNames } = settings
  const { accountKey, responder } = parts
  const signal = AbortSignal.any([parts.signal, AbortSignal.timeout(orderLimitMs)])
  const agent = await createAgent(caFile)
  await checkReachable(directoryUrl, agent, signal)
  const library = await loadLibrary(agent, signal)
  const client = new library.Client({ directoryUrl, accountKey, ...polling })
  const key = toPem(createKeys().privateKey)
  const [, csr] = await library.crypto.createCsr({ altNames: [...hostNames] }, key)
  const ordered = client
    .auto({
      csr,
      ...(email !== undefined && { email }),
      // The configuration is refused unless the operator agrees.
      termsOfServiceAgreed: true,
      challengePriority: [responder.type],
      // The CA is the one who must be able to read the proof.
      skipChallengeVerification: true,
      async challengeCreateFn({ identifier }, { type, token }, value) {
        signal.throwIfAborted()
        const hostName = identifier.value
        if (type !== responder.type) {
          throw new Error(`the CA does not offer the challenge ${responder.type} for ${hostName}`)
        }
        await responder.add({ hostName, token, value }, signal)
      },
      async challengeRemoveFn({ identifier }, { token }, value) {
        const challenge: Challenge = { hostName: identifier.value, token, value }
        await responder.remove(challenge)
      },
    })
    .catch(async (error: unknown) => {
      signal.throwIfAborted()
      // The library fails with a TypeError if it gets no response at all.
      if (error instanceof TypeError)
        throw new Error(`${directoryUrl} stopped answering`, { cause: error })
      throw error
    })
  const cert = await untilAborted(ordered, signal)
  return { cert: cert.endsWith('\n') ? cert : `${cert}\n`, key }
}

/** The library does not know signals, and may be waiting for its next request. */
async function untilAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(signal.reason)
  signal.addEventListener('abort', abort)
  try {
    return await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
    work.catch(() => {}) // May reject later.
  }
}

async function createAgent(caFile: string | undefined): Promise<Agent> {
  if (caFile === undefined) return new Agent()
  const ca = await readFile(caFile, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(`cannot read ATOLL_ACME_CA_FILE ${caFile} (${error.code})`, { cause: error })
  })
  return new Agent({ ca: [...rootCertificates, ca] })
}

/** Loads the library when a certificate is due, which is rare. */
async function loadLibrary(agent: Agent, signal: AbortSignal) {
  const { default: library } = await import('acme-client')
  const { defaults } = library.axios
  Object.assign(defaults, {
    ...{ httpsAgent: agent, timeout: requestLimitMs, signal, maxRedirects: 0 },
    ...{ maxContentLength: maxResponseBytes, maxBodyLength: maxResponseBytes },
    // The library would wait as long as the CA says, within one order.
    acmeSettings: { retryMaxAttempts: 0, retryDefaultDelay: 0 },
  })
  return library
}

/** Fails with the reason of the network, which the library hides. */
async function checkReachable(url: string, agent: Agent, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const request = get(url, { agent, signal, timeout: requestLimitMs }, (response) => {
      response.destroy()
      if (response.statusCode === 200) resolve()
      else reject(new Error(`${url} answered with status ${response.statusCode}`))
    })
    request.once('timeout', () => request.destroy(new Error(`no answer in ${requestLimitMs} ms`)))
    request.once('error', (error: NodeJS.ErrnoException) => {
      reject(
        new Error(`${url} cannot be reached: ${error.message || error.code}`, { cause: error }),
      )
    })
  })
}
