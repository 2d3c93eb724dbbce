import { readFile, rm, writeFile } from 'node:fs/promises'

/**
 * Host-wide setting that several installations share. The first installation to enable it saves the old value, the last
 * one restores it. There is no lock: `release` checks again afterwards whether another installation needs the setting.
 */
export interface Forwarding {
  enable(): Promise<void>
  /**
   * Restores the old value if no installation uses the setting. Call it once this installation no longer counts as a
   * user.
   */
  release(): Promise<void>
}

export function createForwarding(parts: {
  readonly setting: string
  /** File shared by all installations; lost at reboot like the setting. */
  readonly saved: string
  /** Tests whether any installation needs the setting. */
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
