import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileAtomic } from '@atoll/kit/atomic-file'
import { z } from 'zod'
import { quarantinedFault } from '../domain/sandboxes/quarantine.ts'
import type { Quarantined } from '../domain/sandboxes/quarantine.ts'
import type { Setup } from '../domain/sandboxes/setup.ts'
import { encodeRecord, listNames, readRecord } from './record-file.ts'
import { storedSetup } from './records.ts'

export interface BuiltTemplates {
  find(templateId: string): BuiltTemplate | undefined
  /** Does what `find` does, but throws a fault when the record cannot be read. */
  findReadable(templateId: string): BuiltTemplate | undefined
  list(): BuiltTemplate[]
  listQuarantined(): readonly Quarantined[]
  add(template: BuiltTemplate): Promise<void>
  /** Succeeds when there is no such template. */
  remove(templateId: string): Promise<void>
}

export interface BuiltTemplate {
  readonly templateId: string
  /** Topmost layer. */
  readonly layer: string
  readonly setup: Setup
}

export const StoredTemplate = z.object({
  templateId: z.string(),
  layer: z.string(),
  setup: storedSetup,
})
const format = { schema: StoredTemplate, upgrades: [] }

export async function openBuiltTemplates(dir: string): Promise<BuiltTemplates> {
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const { templates, quarantined, leftovers } = await scanBuiltTemplates(dir)
  for (const path of leftovers) await rm(path, { force: true })
  const file = (templateId: string) => join(dir, `${templateId}.json`)
  return {
    find: (templateId) => templates.get(templateId),
    findReadable(templateId) {
      const found = templates.get(templateId)
      if (!found && quarantined.some(({ path }) => path === file(templateId))) {
        throw quarantinedFault(`Template ${templateId}`)
      }
      return found
    },
    list: () => [...templates.values()],
    listQuarantined: () => quarantined,
    async add(template) {
      await writeFileAtomic(file(template.templateId), encodeRecord(template, format))
      templates.set(template.templateId, template)
    },
    async remove(templateId) {
      templates.delete(templateId)
      await rm(file(templateId), { force: true })
    },
  }
}

/** Reads the folder and changes nothing. */
export async function scanBuiltTemplates(dir: string): Promise<{
  readonly templates: Map<string, BuiltTemplate>
  readonly quarantined: readonly Quarantined[]
  /** Temporary files of writes that a crash interrupted. */
  readonly leftovers: readonly string[]
}> {
  const templates = new Map<string, BuiltTemplate>()
  const quarantined: Quarantined[] = []
  const leftovers: string[] = []
  for (const name of await listNames(dir)) {
    const path = join(dir, name)
    if (name.endsWith('.tmp')) {
      leftovers.push(path)
      continue
    }
    const reading = await readRecord(path, format)
    if (reading.state === 'absent') continue
    if (reading.state === 'read' && name === `${reading.record.templateId}.json`) {
      templates.set(reading.record.templateId, reading.record)
      continue
    }
    const isForeign = reading.state === 'read'
    const reason = isForeign ? 'its record belongs to another template' : reading.reason
    quarantined.push({ kind: 'template', path, reason })
  }
  return { templates, quarantined, leftovers }
}
