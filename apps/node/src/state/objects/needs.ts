import { Fault } from '@atoll/kit/fault'
import { z } from 'zod'
import type { CellParts } from '../../domain/sandboxes/cell.ts'
import type { ObjectEnvds } from './object-envds.ts'
import type { ObjectLayers } from './object-layers.ts'

/** Requirements of a sandbox to a node, besides the files of the sandbox itself. */
export const Needs = z.object({
  /** Reference of the build of envd. */
  envd: z.string(),
  cpu: z.object({ architecture: z.string(), features: z.array(z.string()) }),
})

export type Needs = z.infer<typeof Needs>

export interface NeedsStore {
  /** Uploads the layers and the envd of a sandbox or snapshot. */
  upload(kept: Kept, signal: AbortSignal): Promise<Needs>
  /** Fetches what is missing here. Returns the name of the envd on this node. Throws a fault if this node cannot do. */
  fetch(kept: Kept, needs: Needs): Promise<string>
  /** Whether another node could fetch them now. The layer is one of this node. */
  areStored(layer: string, needs: Needs, signal: AbortSignal): Promise<boolean>
}

type Kept = Pick<CellParts, 'layer' | 'envd' | 'runtime'> & { readonly memory?: string }

export function createNeeds(ports: {
  readonly layers: ObjectLayers
  readonly envds: ObjectEnvds
  readonly cpu: Needs['cpu']
  /** Throws a fault when the runtime of this node cannot use the state. */
  checkReadable(kept: Kept): Promise<void>
}): NeedsStore {
  const { layers, envds, cpu } = ports
  return {
    async upload({ layer, envd }, signal) {
      await layers.upload(layer, signal)
      return { envd: await envds.upload(envd, signal), cpu }
    },
    async fetch(kept, needs) {
      await ports.checkReadable(kept)
      checkCpu(needs.cpu, cpu, kept.memory !== undefined)
      await layers.fetch(kept.layer)
      return envds.fetch(needs.envd)
    },
    areStored: async (layer, needs, signal) =>
      (await layers.isStored(layer, signal)) && envds.isStored(needs.envd, signal),
  }
}

/** Programs in saved memory have chosen their instructions already. Files need the same architecture only. */
function checkCpu(needed: Needs['cpu'], present: Needs['cpu'], hasMemory: boolean): void {
  const shown = new Set(present.features)
  const missing = hasMemory ? needed.features.filter((name) => !shown.has(name)) : []
  if (needed.architecture === present.architecture && missing.length === 0) return
  const what =
    needed.architecture === present.architecture
      ? `the CPU features ${missing.slice(0, 8).join(', ')}`
      : `a CPU of the architecture ${needed.architecture}`
  throw new Fault(
    'conflict',
    'node_unsuitable',
    `Its memory needs ${what}, which this node lacks: use a node like the one that saved it`,
  )
}
