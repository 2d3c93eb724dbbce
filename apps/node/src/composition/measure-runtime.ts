import type { MeasureStep } from '@atoll/kit/instrument'
import type { Runtime } from '../domain/sandboxes/runtime.ts'

/** Returns the runtime with its slow calls measured. */
export function measureRuntime(runtime: Runtime, measure: MeasureStep): Runtime {
  const measured =
    <Args extends readonly unknown[], Result>(
      name: string,
      call: (...args: Args) => Promise<Result>,
    ) =>
    (...args: Args) =>
      measure('runtime', name, () => call(...args))
  return {
    ...runtime,
    start: measured('start', runtime.start),
    restore: measured('restore', runtime.restore),
    freeze: measured('freeze', runtime.freeze),
    thaw: measured('thaw', runtime.thaw),
    saveMemory: measured('save_memory', runtime.saveMemory),
    remove: measured('remove', runtime.remove),
  }
}
