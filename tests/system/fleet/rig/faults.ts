/** What a round of faults can kill, and how. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Rig } from '../../../../tools/fleet/rig.ts'
import type { Random } from '../../mutations.ts'
import type { RigStore } from './object-store.ts'

export interface Victim {
  readonly name: string
  /** Sends SIGKILL. */
  kill(): Promise<void>
  start(): Promise<void>
}

const database = 'database'
/** Longest time before the kill, and usually between the kill and the start. */
const maxDelayMs = 4_000
/** In one of four rounds: long enough that paused sandboxes continue on other nodes, and too short for the loss of a node. */
const maxOutageMs = 20_000

export function victimsOf(rig: Rig, { gateway }: Pick<RigStore, 'gateway'>): Victim[] {
  const parts = rig.parts.map((part) => ({
    name: part.name,
    kill: () => part.stop('SIGKILL'),
    start: () => part.start(),
  }))
  return [
    {
      name: database,
      kill: () => rig.database.stop('SIGKILL'),
      start: () => rig.database.restart(),
    },
    { name: 'gateway', kill: () => gateway.kill(), start: () => gateway.start() },
    ...parts,
  ]
}

/** Chooses one or two victims. */
export function chooseVictims(all: readonly Victim[], random: Random): Victim[] {
  const chosen = new Set([all[random(all.length)], all[random(all.length)]])
  return all.filter((victim) => chosen.has(victim))
}

/** Kills the victims, at a moment and for a time that the seed chooses, and waits until they run again. */
export async function causeFaults(victims: readonly Victim[], random: Random): Promise<void> {
  try {
    // There is no state to wait for: the kill is to come at any moment.
    await sleep(random(maxDelayMs))
    await Promise.all(victims.map((victim) => victim.kill()))
    await sleep(random(random(4) === 0 ? maxOutageMs : maxDelayMs))
  } finally {
    // An api does not start without the database.
    for (const victim of victims) if (victim.name === database) await victim.start()
    // All at once: one after the other, the last one might be silent for more than a minute.
    await Promise.all(victims.map((victim) => victim.name !== database && victim.start()))
  }
}
