import { realpath } from 'node:fs/promises'
import { toInstance } from './domain/instance.ts'
import { createRecordStore } from './state/records.ts'

/** How many sandboxes of each template are started but nobody's yet, as an agent on this data has written it down. */
export async function countReady(dataDir: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  const { list } = createRecordStore(toInstance(await realpath(dataDir)))
  for (const { record } of await list()) {
    if (record?.phase !== 'ready') continue
    counts[record.templateId] = (counts[record.templateId] ?? 0) + 1
  }
  return counts
}
