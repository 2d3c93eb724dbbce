import { randomHex } from '@atoll/kit/id'
import { layerKey } from '../../domain/builds/build.ts'
import type { PlannedStep, StepCommand } from '../../domain/builds/build.ts'
import { BuildError } from '../../domain/builds/build-error.ts'
import { archivePath } from '../../domain/builds/build-scripts.ts'
import type { Cell, Shape } from '../../domain/sandboxes/cell.ts'
import type { Commands, OnLine } from '../../domain/sandboxes/commands.ts'
import type { AssignIdentity } from '../lifecycle/assign-identity.ts'
import type { Cells } from '../lifecycle/cells.ts'
import {
  asBuildError,
  asBuildErrorIfFull,
  asBuildErrorIfUnknownUser,
  shorten,
} from './build-errors.ts'
import { maxLayers } from './build-progress.ts'
import type { BuildProgress } from './build-progress.ts'
import { createTakeStepCell } from './step-cells.ts'
import type { ParentTemplate, StepCellPorts, TakeStepCell } from './step-cells.ts'

/** Layers on this node, by the key of the work that made them. */
export interface BuildLayers {
  find(key: string): Promise<string | undefined>
  add(
    layer: { readonly below: string | undefined; readonly key: string },
    write: (dir: string) => Promise<number>,
  ): Promise<string>
  /** Number of stacked layers. */
  depth(name: string): number
  /** Bytes on disk of the layer and those below, without the base layer. */
  sizeBytes(name: string): number
}

export interface BuildLayerPorts extends StepCellPorts {
  readonly cells: Pick<Cells, 'halt' | 'erase'>
  /** Cells in which build commands run. */
  readonly buildingCells: { add(cell: Cell): void; delete(cell: Cell): void }
  readonly assignIdentity: AssignIdentity
  readonly commands: Commands
  /** Variables of all steps, below those of the Dockerfile. Not part of a layer's key: proxies and mirrors change. */
  readonly stepVariables: Readonly<Record<string, string>>
  /** Drops the boot-time CPU priority of a new cell. */
  dropBootPriority(cellId: string): Promise<void>
  readonly layers: BuildLayers
  /** Writes the cell's dirty pages to its disk. */
  syncDisk(cell: Cell): Promise<void>
  /**
   * Copies the files written in a halted cell to a folder. Returns the bytes they take. Throws a fault when there is no
   * room.
   */
  extract(cell: Cell, dir: string): Promise<number>
  findFiles(ownerId: string, hash: string): Promise<string | undefined>
  nowMs(): number
}

export interface LayerRequest {
  readonly shape: Shape
  readonly ownerId: string
  readonly planned: PlannedStep
  readonly below: string
  /** Template that the build starts from, if any. */
  readonly parent?: ParentTemplate | undefined
  /** Prefix of the lines in the build log. */
  readonly label: string
}

/** Runs one step in a cell of its own and keeps the disk as a layer. Reuses the layer of an equal step. */
export type BuildLayer = (request: LayerRequest, progress: BuildProgress) => Promise<string>

export function createBuildLayer(ports: BuildLayerPorts): BuildLayer {
  const takeStepCell = createTakeStepCell(ports)
  return async (request, progress) => {
    const { ownerId, planned, below, label } = request
    const { step, title, command, isForced } = planned
    const note = (message: string) => progress.note(step, 'info', message)
    const shown = `${label} ${shorten(title)}`
    if (!command) {
      await note(`${shown} (settings only)`)
      return below
    }
    const key = layerKey(ownerId, below, command)
    const known = isForced ? undefined : await ports.layers.find(key)
    if (known !== undefined) {
      await note(`CACHED ${shown}`)
      return known
    }
    await note(shown)
    if (ports.layers.depth(below) >= maxLayers) {
      throw new BuildError(step, `A template has at most ${maxLayers} layers: join some steps`)
    }
    const startedMs = ports.nowMs()
    const layer = await makeLayer(
      { ...ports, takeStepCell },
      { ...request, command, key },
      progress,
    )
    await note(`DONE ${shown} took ${((ports.nowMs() - startedMs) / 1000).toFixed(1)}s`)
    return layer
  }
}

async function makeLayer(
  ports: BuildLayerPorts & { readonly takeStepCell: TakeStepCell },
  request: LayerRequest & { readonly command: StepCommand; readonly key: string },
  { note, signal }: BuildProgress,
): Promise<string> {
  const { shape, ownerId, planned, below, parent, label, command, key } = request
  const { step, title } = planned
  const onLine: OnLine = (stream, line) => note(step, 'info', `${label} [${stream}]: ${line}`)
  const startedMs = ports.nowMs()
  const { cell, isBooted } = await ports
    .takeStepCell({ shape, below, parent, signal })
    .catch(asBuildError(step, signal))
  try {
    const source = isBooted ? 'booted' : 'started from the memory of the parent template'
    const tookMs = Math.round(ports.nowMs() - startedMs)
    await note(step, 'debug', `${label} sandbox ${source} in ${tookMs} ms`)
    ports.buildingCells.add(cell)
    await runStep(ports, cell, { ownerId, step, title, command, onLine, signal }).finally(() =>
      ports.buildingCells.delete(cell),
    )
    await ports.syncDisk(cell)
    await ports.cells.halt(cell)
    return await ports.layers
      .add({ below, key }, (dir) => ports.extract(cell, dir))
      .catch(asBuildErrorIfFull(step))
  } finally {
    // Rethrow the original error; the next start removes leftovers.
    await ports.cells.erase(cell).catch(() => {})
  }
}

interface StepRun {
  readonly ownerId: string
  readonly step: string
  readonly title: string
  readonly command: StepCommand
  readonly onLine: OnLine
  readonly signal: AbortSignal
}

async function runStep(ports: BuildLayerPorts, cell: Cell, run: StepRun): Promise<void> {
  const { ownerId, step, title, command, onLine, signal } = run
  const accessToken = randomHex(20)
  const fail = asBuildError(step, signal)
  const identity = { sandboxId: cell.record.templateId, accessToken }
  const envVars = ports.stepVariables
  await ports.assignIdentity(cell, identity, { envVars, signal }).catch(fail)
  await ports.dropBootPriority(cell.record.cellId)
  const endpoint = { address: cell.slot.sandboxAddress, accessToken }
  if (command.filesHash !== undefined) {
    const file = await ports.findFiles(ownerId, command.filesHash).catch(fail)
    if (file === undefined) {
      throw new BuildError(step, 'The files of this step were not uploaded: start the build again')
    }
    await ports.commands.put(endpoint, file, archivePath, signal).catch(fail)
  }
  const options = { onLine, signal }
  const { exitCode, reason } = await ports.commands
    .run(endpoint, command, options)
    .catch(asBuildErrorIfUnknownUser(step, command))
    .catch(fail)
  if (exitCode === 0) return
  const how =
    exitCode === undefined ? `was killed: ${reason}` : `failed with exit status ${exitCode}`
  throw new BuildError(step, `${shorten(title)} ${how}`)
}
