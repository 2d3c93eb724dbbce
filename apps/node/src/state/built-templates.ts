import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileAtomic } from '@atoll/kit/atomic-file'
import { z } from 'zod'
import type { Setup } from '../domain/setup.ts'
import { storedSetup } from './records.ts'
import { listNames, readStored } from './stored.ts'

/** Templates that were made here of others. */
export interface BuiltTemplates {
  find(templateId: string): BuiltTemplate | undefined
  list(): BuiltTemplate[]
  add(template: BuiltTemplate): Promise<void>
  /** Succeeds when there is none. */
  remove(templateId: string): Promise<void>
}

export interface BuiltTemplate {
  readonly templateId: string
  /** The uppermost. */
  readonly layer: string
  readonly setup: Setup
}

const Stored = z.object({ templateId: z.string(), layer: z.string(), setup: storedSetup })

export async function openBuiltTemplates(dir: string): Promise<BuiltTemplates> {
  const templates = new Map<string, BuiltTemplate>()
  const file = (templateId: string) => join(dir, `${templateId}.json`)
  await mkdir(dir, { recursive: true, mode: 0o700 })
  for (const name of await listNames(dir)) {
    const stored = await readStored(join(dir, name), Stored)
    if (stored && name === `${stored.templateId}.json`) templates.set(stored.templateId, stored)
    else await rm(join(dir, name), { force: true })
  }
  return {
    find: (templateId) => templates.get(templateId),
    list: () => [...templates.values()],
    async add(template) {
      await writeFileAtomic(file(template.templateId), JSON.stringify(template))
      templates.set(template.templateId, template)
    },
    async remove(templateId) {
      templates.delete(templateId)
      await rm(file(templateId), { force: true })
    },
  }
}
