import { readFile, rm, writeFile } from 'node:fs/promises'

/**
 * One switch of the whole host that several installations need. The first one to turn it on keeps how it was, the
 * last one to go puts it back. There is no lock: who puts it back looks again afterwards whether somebody came.
 */
export interface Forwarding {
  enable(): Promise<void>
  /** To be called when we do not count as in use any more. */
  release(): Promise<void>
}

export function createForwarding(parts: {
  readonly setting: string
  /** Shared by all installations; gone after a reboot, as the setting is. */
  readonly saved: string
  /** Whether any installation needs it. */
  readonly isInUse: () => Promise<boolean>
}): Forwarding {
  const { setting, saved, isInUse } = parts

  async function enable(): Promise<void> {
    const before = (await readFile(setting, 'utf8')).trim()
    if (before === '1') return
    await writeFile(saved, before)
    await writeFile(setting, '1')
  }

  return {
    enable,
    async release() {
      if (await isInUse()) return
      const before = await readFile(saved, 'utf8').catch(() => undefined)
      if (before === undefined) return
      await writeFile(setting, before)
      await rm(saved, { force: true })
      if (await isInUse()) await enable()
    },
  }
}
