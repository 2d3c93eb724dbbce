import { existsSync } from 'node:fs'
import { mkdir, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import { tryRun } from '@atoll/kit/run'
import { unitFile, unitName } from './unit.ts'

/** Registers, starts and stops the unit. */
export interface ServiceManager {
  /** Set if the unit belongs to this machine, not to the file tree of another one. */
  readonly running?: {
    restart(): Promise<void>
    stop(): Promise<void>
    isActive(): Promise<boolean>
  }
  enable(): Promise<void>
  disable(): Promise<void>
  /** Call after the unit was written or removed. */
  reload(): Promise<void>
}

/** systemd on this machine. Throws a fault when it does not run. */
export function openSystemd(): ServiceManager {
  if (!existsSync('/run/systemd/system')) {
    const message =
      'This machine does not run systemd. Start the server with `atoll up` under your own supervisor, or pass --root to write the unit into the file tree of another system'
    throw new Fault('unavailable', 'no_systemd', message)
  }
  return {
    enable: () => systemctl('enable', unitName),
    disable: () => systemctl('disable', unitName),
    reload: () => systemctl('daemon-reload'),
    running: {
      restart: () => systemctl('restart', unitName),
      stop: () => systemctl('stop', unitName),
      isActive: () =>
        systemctl('is-active', '--quiet', unitName).then(
          () => true,
          () => false,
        ),
    },
  }
}

/** The file tree of another system, which may have no systemctl yet: a unit is enabled by a link. */
export function openFileTree(root: string): ServiceManager {
  const link = join(root, dirname(unitFile), 'multi-user.target.wants', unitName)
  return {
    async enable() {
      await mkdir(dirname(link), { recursive: true })
      await rm(link, { force: true })
      await symlink(unitFile, link)
    },
    disable: () => rm(link, { force: true }),
    reload: async () => {},
  }
}

/** Stopping the server takes up to a minute. */
const timeoutMs = 150_000

async function systemctl(...args: readonly string[]): Promise<void> {
  const result = await tryRun('systemctl', args, { timeoutMs })
  if (result.code === 0) return
  const output = (result.stderr || result.stdout).trim()
  throw new Fault('unavailable', 'service_failed', `systemctl ${args.join(' ')} failed: ${output}`)
}
