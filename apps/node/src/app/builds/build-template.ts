import { randomHex } from '@atoll/kit/id'
import { Fault } from '@atoll/kit/fault'
import { BuildError, checkBuild, finalSetup, layerKey } from '../../domain/builds/build.ts'
import type { BuildRequest, PlannedStep, StepCommand } from '../../domain/builds/build.ts'
import { archivePath } from '../../domain/builds/build-scripts.ts'
import { planImageSetup, planSteps } from '../../domain/builds/build-steps.ts'
import type { Cell, Shape } from '../../domain/sandboxes/cell.ts'
import type { Commands, OnLine } from '../../domain/sandboxes/commands.ts'
import type { Images } from '../../domain/builds/image.ts'
import type { LogLevel } from '../../domain/sandboxes/log.ts'
import { defaultSetup } from '../../domain/sandboxes/setup.ts'
import type { Setup } from '../../domain/sandboxes/setup.ts'
import type { RunStartCommand, StartCommandOptions } from '../lifecycle/start-command.ts'
import type { CellPlan, Cells, TemplateFiles } from '../lifecycle/cells.ts'
import type { AssignIdentity } from '../lifecycle/claim.ts'
import { createImageLayers } from './image-layers.ts'

/** Builds a template from another one. Each step runs in its own cell, whose disk becomes a layer. */
export type BuildTemplate = (request: BuildRequest, progress: BuildProgress) => Promise<Built>

export interface Built {
  /** Bytes on disk of the template's own layers. */
  readonly sizeBytes: number
}

export interface BuildProgress {
  /** Writes to the build log. Resolves when more may be written, since the reader may be slower than the step. */
  readonly note: (step: string, level: LogLevel, message: string) => Promise<void>
  readonly signal: AbortSignal
}

export interface BuildPorts {
  readonly cells: Pick<Cells, 'halt' | 'erase'>
  /** Boots a cell when there is room for it. */
  takeCell(plan: CellPlan): Promise<Cell>
  /** Cells in which build commands run. */
  readonly buildingCells: { add(cell: Cell): void; delete(cell: Cell): void }
  readonly assignIdentity: AssignIdentity
  readonly runStartCommand: RunStartCommand
  /** Waits for the envd of a cell without an identity. */
  prepare(cell: Cell): Promise<void>
  readonly commands: Commands
  /** Drops the boot-time CPU priority of a new cell. */
  dropBootPriority(cellId: string): Promise<void>
  findTemplate(templateId: string): TemplateFiles | undefined
  readonly templates: {
    add(template: {
      readonly templateId: string
      readonly layer: string
      readonly setup: Setup
    }): Promise<void>
  }
  readonly layers: {
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
  /** Writes the cell's dirty pages to its disk. */
  syncDisk(cell: Cell): Promise<void>
  /**
   * Copies the files written in a halted cell to a folder. Returns the bytes they take. Throws a fault when there is no
   * room.
   */
  extract(cell: Cell, dir: string): Promise<number>
  readonly images: Images
  findFiles(ownerId: string, hash: string): Promise<string | undefined>
  /**
   * Checkpoints a started cell as the prototype of the shape. Returns false when the runtime cannot checkpoint memory.
   */
  ensurePrototype(shape: Shape, options: PrototypeOptions): Promise<boolean>
  discardPrototypes(templateId: string): Promise<void>
  nowMs(): number
}

export interface PrototypeOptions extends StartCommandOptions {
  readonly files: TemplateFiles
}

/** The kernel limits the names of all layers of a mount to one page. */
const mostLayers = 40
/** Limit without prototypes: every new sandbox then runs the start command, and its client waits. */
const readyLimitMs = 45_000

export function createBuildTemplate(ports: BuildPorts): BuildTemplate {
  const imageLayers = createImageLayers(ports)

  async function beginWith(request: BuildRequest, progress: BuildProgress): Promise<TemplateFiles> {
    const { parent } = request
    const name = typeof parent === 'string' ? parent : parent.reference
    await progress.note('base', 'info', `[base] FROM ${name}`)
    if (typeof parent !== 'string') {
      const source = { image: parent, ownerId: request.ownerId, mostLayers }
      const fails = asBuildError('base', progress.signal)
      const { layer, setup } = await imageLayers(source, progress).catch(fails)
      const furnished = { step: 'base', title: 'adding the user', ...planImageSetup(setup) }
      const at = { below: layer, label: '[base]', ...progress }
      return { layer: await layerOf(request, furnished, at), setup }
    }
    const found = ports.findTemplate(parent)
    if (found) return found
    throw new BuildError('base', `There is no template ${parent} any more`)
  }

  async function layerOf(
    request: BuildRequest,
    { step, title, command, isForced }: PlannedStep,
    at: BuildProgress & { readonly below: string; readonly label: string },
  ): Promise<string> {
    const { below, label, note, signal } = at
    const shown = `${label} ${cut(title)}`
    if (!command) {
      await note(step, 'info', shown)
      return below
    }
    const key = layerKey(request.ownerId, below, command)
    const known = isForced ? undefined : await ports.layers.find(key)
    await note(step, 'info', known === undefined ? shown : `CACHED ${shown}`)
    if (known !== undefined) return known
    if (ports.layers.depth(below) >= mostLayers) {
      throw new BuildError(step, `A template has at most ${mostLayers} layers: join some steps`)
    }
    const onLine: OnLine = (stream, line) => note(step, 'info', `${label} [${stream}]: ${line}`)
    const task = { ownerId: request.ownerId, step, title, command }
    const plan = { shape: request.shape, files: { layer: below }, signal }
    const cell = await ports.takeCell(plan).catch(asBuildError(step, signal))
    try {
      ports.buildingCells.add(cell)
      await carryOut(cell, task, { onLine, signal }).finally(() => ports.buildingCells.delete(cell))
      await ports.syncDisk(cell)
      await ports.cells.halt(cell)
      return await ports.layers
        .add({ below, key }, (dir) => ports.extract(cell, dir))
        .catch(ifNoRoom(step))
    } finally {
      // Rethrow the original error; the next start removes leftovers.
      await ports.cells.erase(cell).catch(() => {})
    }
  }

  async function carryOut(
    cell: Cell,
    { ownerId, step, title, command }: Task,
    options: { readonly onLine: OnLine; readonly signal: AbortSignal },
  ): Promise<void> {
    const { signal } = options
    const accessToken = randomHex(20)
    const fails = asBuildError(step, signal)
    await ports
      .assignIdentity(cell, { sandboxId: cell.record.templateId, accessToken }, options)
      .catch(fails)
    await ports.dropBootPriority(cell.record.cellId)
    const endpoint = { address: cell.slot.sandboxAddress, accessToken }
    if (command.filesHash !== undefined) {
      const file = await ports.findFiles(ownerId, command.filesHash)
      if (file === undefined) {
        throw new BuildError(step, 'Its files were not uploaded: build it again')
      }
      await ports.commands.put(endpoint, file, archivePath, signal).catch(fails)
    }
    const { exitCode, reason } = await ports.commands.run(endpoint, command, options).catch(fails)
    if (exitCode === 0) return
    const how =
      exitCode === undefined ? `was ended: ${reason}` : `failed with exit status ${exitCode}`
    throw new BuildError(step, `${cut(title)} ${how}`)
  }

  /** Checks that a sandbox of the template starts, and keeps a prototype where memory can be checkpointed. */
  async function finish(
    shape: Shape,
    files: TemplateFiles & { readonly setup: Setup },
    { note, signal }: BuildProgress,
  ): Promise<void> {
    const say = (line: string) => note('finalize', 'info', `[finalize] ${line}`)
    const onLine: OnLine = (stream, line) => say(`[${stream}]: ${line}`)
    const { startCommand } = files.setup
    if (startCommand !== undefined) await say(`START ${cut(startCommand)}`)
    const fails = asBuildError('finalize', signal)
    if (await keepPrototype(shape, { files, onLine, signal }, note).catch(fails)) return
    const limit = AbortSignal.any([signal, AbortSignal.timeout(readyLimitMs)])
    const { layer, setup } = files
    const cell = await ports.takeCell({ shape, files: { layer }, signal }).catch(fails)
    try {
      await ports.prepare(cell)
      await ports.runStartCommand(
        { ...cell, record: { ...cell.record, setup } },
        { onLine, signal: limit },
      )
    } catch (error) {
      if (limit.aborted) signal.throwIfAborted()
      if (!limit.aborted) fails(error)
      const seconds = readyLimitMs / 1000
      throw new BuildError('finalize', `It was not ready within ${seconds} seconds`)
    } finally {
      await ports.cells.erase(cell).catch(() => {})
    }
  }

  /** Returns false when the memory cannot be checkpointed. The template is still usable: its sandboxes boot. */
  async function keepPrototype(
    shape: Shape,
    options: PrototypeOptions & { readonly signal: AbortSignal },
    note: BuildProgress['note'],
  ): Promise<boolean> {
    try {
      return await ports.ensurePrototype(shape, options)
    } catch (error) {
      options.signal.throwIfAborted()
      if (!(error instanceof Fault) || error.kind !== 'invalid') throw error
      await note('finalize', 'warn', `[finalize] its memory cannot be kept: ${error.message}`)
      return false
    }
  }

  return async (request, progress) => {
    checkBuild(request)
    const beganMs = ports.nowMs()
    const parent = await beginWith(request, progress)
    const parentSetup = parent.setup ?? defaultSetup
    const steps = planSteps(request, parentSetup)
    let { layer } = parent
    for (const planned of steps) {
      const label = `[builder ${planned.step}/${steps.length}]`
      layer = await layerOf(request, planned, { below: layer, label, ...progress })
    }
    const setup = finalSetup(request, parentSetup, steps.at(-1))
    const { templateId } = request.shape
    try {
      await finish(request.shape, { layer, setup }, progress)
      progress.signal.throwIfAborted()
      await ports.templates.add({ templateId, layer, setup })
    } catch (error) {
      await ports.discardPrototypes(templateId)
      throw error
    }
    const seconds = ((ports.nowMs() - beganMs) / 1000).toFixed(1)
    await progress.note('finalize', 'info', `Build finished, took ${seconds}s`)
    return { sizeBytes: ports.layers.sizeBytes(layer) - ports.layers.sizeBytes(parent.layer) }
  }
}

interface Task {
  readonly ownerId: string
  readonly step: string
  readonly title: string
  readonly command: StepCommand
}

/** Turns failures inside a sandbox into build errors for the template's author. */
function asBuildError(step: string, signal: AbortSignal): (error: unknown) => never {
  return (error) => {
    signal.throwIfAborted()
    if (error instanceof BuildError) throw error
    if (error instanceof Fault && error.kind === 'internal') throw error
    const said = error instanceof Error ? error.message : String(error)
    throw new BuildError(step, `It could not be carried out: ${cut(said)}`, { cause: error })
  }
}

/** Turns only a lack of space into a build error: other errors name paths of this machine. */
function ifNoRoom(step: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof Fault) || error.kind !== 'exhausted') throw error
    throw new BuildError(step, error.message, { cause: error })
  }
}

function cut(text: string): string {
  return text.length > shownLength ? `${text.slice(0, shownLength)}…` : text
}

const shownLength = 500
