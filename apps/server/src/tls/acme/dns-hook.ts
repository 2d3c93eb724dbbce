import { tryRun } from '@atoll/kit/run'
import type { Challenge, ChallengeResponder } from './challenges.ts'

/** DNS servers may take minutes until all of them have a new record. */
const limitMs = 10 * 60_000
const maxOutputChars = 500
/** Minimal environment: the server's own variables may contain secrets. */
const environment = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: '/root',
}

/**
 * Proofs in DNS (RFC 8555, section 8.4), which a program of the operator publishes: `HOOK add NAME VALUE` creates a TXT
 * record and exits once all servers of the zone have it, `HOOK remove NAME VALUE` removes it.
 */
export function createDnsHook(hook: string): ChallengeResponder {
  async function runHook(
    action: 'add' | 'remove',
    { hostName, value }: Challenge,
    signal?: AbortSignal,
  ): Promise<void> {
    const args = [action, `_acme-challenge.${hostName}`, value]
    const options = { timeoutMs: limitMs, env: environment, ...(signal && { signal }) }
    const {
      code,
      signal: killedBy,
      stdout,
      stderr,
    } = await tryRun(hook, args, options).catch((error: NodeJS.ErrnoException) => {
      signal?.throwIfAborted()
      throw new Error(
        `the hook ${hook} cannot be run (${error.code}); set ATOLL_ACME_HOOK to an executable file`,
        { cause: error },
      )
    })
    if (code === 0) return
    const how = code === null ? `was killed by ${killedBy}` : `failed with exit status ${code}`
    const output = (stderr.trim() || stdout.trim()).slice(-maxOutputChars)
    throw new Error(`the hook ${hook} ${args.slice(0, 2).join(' ')} ${how}: ${output}`)
  }

  return {
    type: 'dns-01',
    add: (challenge, signal) => runHook('add', challenge, signal),
    remove: (challenge) => runHook('remove', challenge),
  }
}
