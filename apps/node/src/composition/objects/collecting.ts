import type { Logger } from '@atoll/kit/log'
import type { LayerCollection } from '../../state/objects/collect-layers.ts'

const intervalMs = 10 * 60 * 1000

/** Removes unneeded layers from the object store from time to time, beside the uploads. */
export function startCollecting(
  collection: LayerCollection,
  log: Logger,
): { close(): Promise<void> } {
  const closing = new AbortController()
  const { signal } = closing
  let timer: NodeJS.Timeout | undefined
  let underway = Promise.resolve()

  async function work(): Promise<void> {
    try {
      await collection.run(signal)
    } catch (err) {
      if (signal.aborted) return
      log.warn(
        { err, event: 'node.objects' },
        'unneeded layers were not removed from the object store; a later pass tries again',
      )
    }
    if (!signal.aborted) timer = setTimeout(begin, intervalMs)
  }
  function begin(): void {
    underway = work()
  }
  begin()
  return {
    async close() {
      clearTimeout(timer)
      closing.abort()
      await underway
    },
  }
}
