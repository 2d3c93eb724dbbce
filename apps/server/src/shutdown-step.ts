import type { Logger } from '@atoll/kit/log'

/** One step of the shutdown has this long; the next begins even if it hangs. */
const defaultLimitMs = 20_000

/** Makes a step of the shutdown that always settles: a failure, or a step that hangs, is logged and the rest goes on. */
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
      log.error({ err: error, event: 'server.stop.step', step }, 'a step of the shutdown failed')
    } finally {
      clearTimeout(timer)
    }
  }
}
