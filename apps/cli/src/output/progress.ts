import { createProgressView } from '@atoll/server/progress'
import type { ProgressView } from '@atoll/server/progress'
import { visibleName } from './visible-text.ts'

/** Progress on stderr: a bar on a terminal, a line for every 10 percent elsewhere. Labels may be hostile. */
export function openProgress(stderr: NodeJS.WriteStream): ProgressView {
  const view = createProgressView(stderr)
  return { ...view, report: (label, fraction) => view.report(visibleName(label), fraction) }
}

/** Passes chunks on, and reports how much of the total went through. */
export async function* counted(
  chunks: AsyncIterable<Uint8Array>,
  report: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const chunk of chunks) {
    yield chunk
    report((bytes += chunk.length))
  }
}
