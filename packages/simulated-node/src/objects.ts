import { Code, ConnectError } from '@connectrpc/connect'
import type { PausedSandbox, SimulatedEntry, SimulatedObjects } from './sandbox.ts'

export function simulateObjects(): SimulatedObjects {
  return Object.assign(new Map<string, PausedSandbox>(), {
    logs: new Map<string, readonly SimulatedEntry[]>(),
    buildFiles: new Map<string, Buffer>(),
    isDown: false,
  })
}

/** Throws like a node that has no object store, or does not reach it. */
export function reachObjects(objects: SimulatedObjects | undefined): SimulatedObjects {
  if (!objects) throw new ConnectError('no object store', Code.InvalidArgument)
  if (objects.isDown) throw new ConnectError('the object store is down', Code.Unavailable)
  return objects
}
