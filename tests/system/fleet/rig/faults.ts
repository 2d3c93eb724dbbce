/** Parts that a round of faults can kill, and how. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Rig } from '../../../../tools/fleet/rig.ts'
import type { Random } from '../../mutations.ts'
import type { RigStore } from './object-store.ts'

export interface Victim {
  readonly name: string
  /** Sends SIGKILL. */
  kill(): Promise<void>
  start(): Promise<void>
  /** Whether it does not start without the database. */
  readonly needsDatabase?: boolean
}

const databaseName = 'database'
const isDatabase = ({ name }: Victim) => name === databaseName
/** Longest time before the kill, and usually between the kill and the start. */
const maxDelayMs = 4_000
/** In one of four rounds: long enough that paused sandboxes continue on other nodes, and too short for the loss of a node. */
const maxOutageMs = 20_000

export function victimsOf(rig: Rig, { gateway }: Pick<RigStore, 'gateway'>): Victim[] {
  const parts = rig.parts.map((part) => ({
    name: part.name,
    kill: () => part.stop('SIGKILL'),
    start: () => part.start(),
    needsDatabase: rig.apis.some(({ name }) => name === part.name),
  }))
  return [
    {
      name: databaseName,
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

/**
 * Kills the victims, at a moment and for a time that the seed chooses, and waits until they run again. Returns the milliseconds from the
 * kill until then.
 */
export async function causeFaults(victims: readonly Victim[], random: Random): Promise<number> {
  let killedAt = performance.now()
  try {
    // There is no state to wait for: the kill is to come at any moment.
    await sleep(random(maxDelayMs))
    killedAt = performance.now()
    await Promise.all(victims.map((victim) => victim.kill()))
    await sleep(random(random(4) === 0 ? maxOutageMs : maxDelayMs))
  } finally {
    // All at once: an agent that waits for others might be silent for more than a minute. Only an api needs the database to start.
    const database = Promise.all(victims.filter(isDatabase).map((victim) => victim.start()))
    await Promise.all([
      database,
      ...victims.map(async (victim) => {
        if (isDatabase(victim)) return
        if (victim.needsDatabase) await database
        await victim.start()
      }),
    ])
  }
  return performance.now() - killedAt
}
