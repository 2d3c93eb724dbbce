import { randomHex } from '@atoll/kit/id'
import { Fault } from '@atoll/kit/fault'
import { BuildError, checkBuild, finalSetup, keyOf } from '../domain/build.ts'
import type { BuildRequest, PlannedStep, Work } from '../domain/build.ts'
import { archivePath } from '../domain/build-scripts.ts'
import { furnish, planSteps } from '../domain/build-steps.ts'
import type { Cell, Shape } from '../domain/cell.ts'
import type { Commands, OnLine } from '../domain/commands.ts'
import type { Images } from '../domain/image.ts'
import type { LogLevel } from '../domain/log.ts'
import { usualSetup } from '../domain/setup.ts'
import type { Setup } from '../domain/setup.ts'
import type { Begin, BeginOptions } from './begin.ts'
import type { CellPlan, Cells, TemplateFiles } from './cells.ts'
import type { Tell } from './claim.ts'
import { createImageLayers } from './image-layers.ts'

/** Makes a template of another one: each step is carried out in a cell of its own, whose disk becomes a layer. */
export type BuildTemplate = (request: BuildRequest, progress: BuildProgress) => Promise<Built>

export interface Built {
  /** What its own layers take on the disk. */
  readonly sizeBytes: number
}

export interface BuildProgress {
  /** Returns once more may be said: whoever listens may be slower than a step that prints. */
  readonly note: (step: string, level: LogLevel, message: string) => Promise<void>
  readonly signal: AbortSignal
}

export interface BuildPorts {
  readonly cells: Pick<Cells, 'halt' | 'erase'>
  /** Boots one, when there is room for it. */
  make(plan: CellPlan): Promise<Cell>
  /** Those in which commands of a build run. */
  readonly busy: { add(cell: Cell): void; delete(cell: Cell): void }
  readonly tell: Tell
  readonly begin: Begin
  /** Waits for the envd of one that was told nothing. */
  prepare(cell: Cell): Promise<void>
  readonly commands: Commands
  /** Takes away the start that a new cell has over others. */
  level(cellId: string): Promise<void>
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
    /** How many lie over each other. */
    depth(name: string): number
    /** What those together take on the disk that steps made. */
    sizeBytes(name: string): number
  }
  /** Brings what was written in a cell to its disk. */
  settle(cell: Cell): Promise<void>
  /** Copies what was written in a cell that has been halted. Gives what it takes. A fault when there is no room for it. */
  extract(cell: Cell, dir: string): Promise<number>
  readonly images: Images
  findFiles(ownerId: string, hash: string): Promise<string | undefined>
  /** Keeps one that has begun, for others to go on from; false where memory is not kept. */
  prototype(shape: Shape, options: PrototypeOptions): Promise<boolean>
  discardPrototypes(templateId: string): Promise<void>
  nowMs(): number
}

export interface PrototypeOptions extends BeginOptions {
  readonly files: TemplateFiles
}

/** The kernel takes the names of all layers of a mount in one page. */
const mostLayers = 40
/** Where each sandbox begins anew, whoever creates one waits for it. */
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
      const furnished = { step: 'base', title: 'adding the user', ...furnish(setup) }
      const at = { below: layer, label: '[base]', ...progress }
      return { layer: await layerOf(request, furnished, at), setup }
    }
    const found = ports.findTemplate(parent)
    if (found) return found
    throw new BuildError('base', `There is no template ${parent} any more`)
  }

  async function layerOf(
    request: BuildRequest,
    { step, title, work, isForced }: PlannedStep,
    at: BuildProgress & { readonly below: string; readonly label: string },
  ): Promise<string> {
    const { below, label, note, signal } = at
    const shown = `${label} ${cut(title)}`
    if (!work) {
      await note(step, 'info', shown)
      return below
    }
    const key = keyOf(request.ownerId, below, work)
    const known = isForced ? undefined : await ports.layers.find(key)
    await note(step, 'info', known === undefined ? shown : `CACHED ${shown}`)
    if (known !== undefined) return known
    if (ports.layers.depth(below) >= mostLayers) {
      throw new BuildError(step, `A template has at most ${mostLayers} layers: join some steps`)
    }
    const onLine: OnLine = (stream, line) => note(step, 'info', `${label} [${stream}]: ${line}`)
    const task = { ownerId: request.ownerId, step, title, work }
    const plan = { shape: request.shape, files: { layer: below }, signal }
    const cell = await ports.make(plan).catch(asBuildError(step, signal))
    try {
      ports.busy.add(cell)
      await carryOut(cell, task, { onLine, signal }).finally(() => ports.busy.delete(cell))
      await ports.settle(cell)
      await ports.cells.halt(cell)
      return await ports.layers
        .add({ below, key }, (dir) => ports.extract(cell, dir))
        .catch(ifNoRoom(step))
    } finally {
      // The first reason is the one to tell; what is left of it goes at the next start.
      await ports.cells.erase(cell).catch(() => {})
    }
  }

  async function carryOut(
    cell: Cell,
    { ownerId, step, title, work }: Task,
    options: { readonly onLine: OnLine; readonly signal: AbortSignal },
  ): Promise<void> {
    const { signal } = options
    const accessToken = randomHex(20)
    const fails = asBuildError(step, signal)
    await ports.tell(cell, { sandboxId: cell.record.templateId, accessToken }, options).catch(fails)
    await ports.level(cell.record.cellId)
    const door = { address: cell.slot.sandboxAddress, accessToken }
    if (work.filesHash !== undefined) {
      const file = await ports.findFiles(ownerId, work.filesHash)
      if (file === undefined) {
        throw new BuildError(step, 'Its files were not uploaded: build it again')
      }
      await ports.commands.put(door, file, archivePath, signal).catch(fails)
    }
    const { exitCode, ending } = await ports.commands.run(door, work, options).catch(fails)
    if (exitCode === 0) return
    const how =
      exitCode === undefined ? `was ended: ${ending}` : `failed with exit status ${exitCode}`
    throw new BuildError(step, `${cut(title)} ${how}`)
  }

  /** Shows that it begins as it should, and keeps that where memory is kept. */
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
    const cell = await ports.make({ shape, files: { layer }, signal }).catch(fails)
    try {
      await ports.prepare(cell)
      await ports.begin({ ...cell, record: { ...cell.record, setup } }, { onLine, signal: limit })
    } catch (error) {
      if (limit.aborted) signal.throwIfAborted()
      if (!limit.aborted) fails(error)
      const seconds = readyLimitMs / 1000
      throw new BuildError('finalize', `It was not ready within ${seconds} seconds`)
    } finally {
      await ports.cells.erase(cell).catch(() => {})
    }
  }

  /** Memory that cannot be kept is no reason against the template: its sandboxes boot. */
  async function keepPrototype(
    shape: Shape,
    options: PrototypeOptions & { readonly signal: AbortSignal },
    note: BuildProgress['note'],
  ): Promise<boolean> {
    try {
      return await ports.prototype(shape, options)
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
    const parentSetup = parent.setup ?? usualSetup
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
  readonly work: Work
}

/** Whatever goes wrong in a sandbox is its author's to know of. */
function asBuildError(step: string, signal: AbortSignal): (error: unknown) => never {
  return (error) => {
    signal.throwIfAborted()
    if (error instanceof BuildError) throw error
    if (error instanceof Fault && error.kind === 'internal') throw error
    const said = error instanceof Error ? error.message : String(error)
    throw new BuildError(step, `It could not be carried out: ${cut(said)}`, { cause: error })
  }
}

/** All else that goes wrong while we keep what it left is ours, and names places of this machine. */
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
