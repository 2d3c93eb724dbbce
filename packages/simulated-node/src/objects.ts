import { reasonHeader } from '@atoll/contracts/node-faults'
import { Code, ConnectError } from '@connectrpc/connect'
import type {
  PausedSandbox,
  SimulatedEntry,
  SimulatedObjects,
  SimulatedSnapshot,
} from './sandbox.ts'

export function simulateObjects(): SimulatedObjects {
  return Object.assign(new Map<string, PausedSandbox>(), {
    logs: new Map<string, readonly SimulatedEntry[]>(),
    buildFiles: new Map<string, Buffer>(),
    snapshots: new Map<string, SimulatedSnapshot>(),
    templates: new Set<string>(),
    isDown: false,
  })
}

/** Throws like a node that has no object store, or does not reach it. */
export function reachObjects(objects: SimulatedObjects | undefined): SimulatedObjects {
  if (!objects) throw new ConnectError('no object store', Code.InvalidArgument)
  if (objects.isDown) {
    const reason = { [reasonHeader]: 'objects_unavailable' }
    throw new ConnectError('the object store is down', Code.Unavailable, reason)
  }
  return objects
}
