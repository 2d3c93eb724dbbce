import type { Logger } from '@atoll/kit/log'

/** Time limit of one shutdown step; the next step starts even if this one hangs. */
const defaultLimitMs = 20_000

/** Creates a shutdown step that always settles: failures and timeouts are logged, and the shutdown continues. */
export function shutdownStep(
  {
    log,
    limitMs = defaultLimitMs,
  }: { readonly log: Logger; readonly limitMs?: number | undefined },
  step: string,
  run: () => Promise<unknown>,
): () => Promise<void> {
  return async () => {
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(
      () => late.reject(new Error(`not finished after ${limitMs} ms`)),
      limitMs,
    )
    try {
      await Promise.race([run(), late.promise])
    } catch (error) {
      log.error(
        { err: error, event: 'server.stop.step', step },
        'a step of the shutdown failed; the others continue',
      )
    } finally {
      clearTimeout(timer)
    }
  }
}
