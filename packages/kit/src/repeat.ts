/**
 * Timer of a reconciler: runs `task` repeatedly, never two passes at once. The returned function stops it and waits for
 * the current pass.
 */
export function repeat(
  intervalMs: number,
  task: () => Promise<void>,
  onError: (error: unknown) => void,
): () => Promise<void> {
  let stopped = false
  let underWay = Promise.resolve()
  let timer = setTimeout(tick, intervalMs)

  function tick(): void {
    underWay = pass()
  }

  async function pass(): Promise<void> {
    await task().catch(onError)
    if (!stopped) timer = setTimeout(tick, intervalMs)
  }

  return async () => {
    stopped = true
    clearTimeout(timer)
    await underWay
  }
}
