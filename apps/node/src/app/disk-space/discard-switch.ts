import type { DiskState } from '../../domain/host/disk-space.ts'

/**
 * Decides which disks return deleted blocks to the host at once. Without discarding, deleted blocks stay allocated in
 * the image while the sandbox may write as many others. Discarding makes deletions slow.
 */
export interface DiscardSwitch {
  /** Switches one more of these disks on, the one with the largest image first. */
  turnOn(disks: readonly DiskState[]): void
  turnOff(disks: readonly DiskState[]): void
}

export interface DiscardPorts {
  /** Discards the free blocks of a disk now, and deleted blocks from now on. */
  startDiscarding(id: string): Promise<void>
  stopDiscarding(id: string): Promise<void>
  onError(error: unknown): void
}

/** `adopted`: disks mounted before this process started, for which an earlier agent may have switched discarding on. */
export function createDiscardSwitch(
  ports: DiscardPorts,
  adopted: readonly DiskState[],
): DiscardSwitch {
  const discarding = new Set(adopted.map(({ id }) => id))
  let switching: Promise<void> | undefined

  /** Switches one disk at a time: a remount writes all dirty pages of the disk. */
  function switchOne(disks: readonly DiskState[], isOn: boolean): void {
    const present = new Set(disks.map(({ id }) => id))
    for (const id of discarding) if (!present.has(id)) discarding.delete(id)
    if (switching) return
    const [next] = disks
      .filter(({ id }) => discarding.has(id) !== isOn)
      .toSorted((a, b) => b.imageBytes - a.imageBytes)
    if (!next) return
    if (isOn) discarding.add(next.id)
    else discarding.delete(next.id)
    const done = isOn ? ports.startDiscarding(next.id) : ports.stopDiscarding(next.id)
    switching = done.catch(ports.onError).finally(() => (switching = undefined))
  }

  return {
    turnOn: (disks) => switchOne(disks, true),
    turnOff: (disks) => switchOne(disks, false),
  }
}
