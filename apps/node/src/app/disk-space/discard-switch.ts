import type { DiskState } from '../../domain/host/space-division.ts'

/**
 * Decides which disks return deleted blocks to the host at once. Without discarding, deleted blocks stay allocated in
 * the image while the sandbox may write as many others. Discarding makes deletions slower.
 */
export interface DiscardSwitch {
  /** Starts to switch disks on, the ones with the largest holes first. Returns true while disks are left to switch. */
  turnOn(disks: readonly DiskState[]): boolean
  turnOff(disks: readonly DiskState[]): boolean
  /** Switches one disk on, whatever else is under way. */
  turnOnNow(id: string): Promise<void>
}

export interface DiscardPorts {
  /** Discards the free blocks of a disk now, and deleted blocks from now on. */
  startDiscarding(id: string): Promise<void>
  stopDiscarding(id: string): Promise<void>
  nowMs(): number
  onError(error: unknown): void
}

/** A remount writes all dirty pages of the disk, so only some are switched at a time. */
const atOnce = 4
const retryMs = 30_000

export function createDiscardSwitch(ports: DiscardPorts): DiscardSwitch {
  const switching = new Map<string, Promise<void>>()
  const retryAtMs = new Map<string, number>()

  async function switchDisk(id: string, isOn: boolean): Promise<void> {
    try {
      await (isOn ? ports.startDiscarding(id) : ports.stopDiscarding(id))
      retryAtMs.delete(id)
    } catch (error) {
      retryAtMs.set(id, ports.nowMs() + retryMs)
      ports.onError(error)
    } finally {
      switching.delete(id)
    }
  }

  function begin(id: string, isOn: boolean): Promise<void> {
    const work = switchDisk(id, isOn)
    switching.set(id, work)
    return work
  }

  function turn(disks: readonly DiskState[], isOn: boolean): boolean {
    const present = new Set(disks.map(({ id }) => id))
    for (const id of retryAtMs.keys()) if (!present.has(id)) retryAtMs.delete(id)
    const wanted = disks
      .filter(({ isTrimmed }) => isTrimmed !== isOn)
      .filter(({ id }) => ports.nowMs() >= (retryAtMs.get(id) ?? -Infinity))
      .toSorted((a, b) => holesOf(b) - holesOf(a))
    const waiting = wanted.filter(({ id }) => !switching.has(id))
    const free = Math.max(0, atOnce - switching.size)
    for (const { id } of waiting.slice(0, free)) void begin(id, isOn)
    return wanted.length > 0
  }

  return {
    turnOn: (disks) => turn(disks, true),
    turnOff: (disks) => turn(disks, false),
    async turnOnNow(id) {
      await switching.get(id)
      await begin(id, true)
    },
  }
}

function holesOf({ sizeBytes, imageBytes }: DiskState): number {
  return sizeBytes - imageBytes
}
