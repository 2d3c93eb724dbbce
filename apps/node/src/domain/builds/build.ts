import { createHash } from 'node:crypto'
import { Fault } from '@atoll/kit/fault'
import { checkId } from '../sandboxes/cell.ts'
import type { Shape } from '../sandboxes/cell.ts'
import type { Command } from '../sandboxes/commands.ts'
import type { ImageSource } from './image.ts'
import type { Setup } from '../sandboxes/setup.ts'

/** A request to build a template from another template or from an image. */
export interface BuildRequest {
  /** Size of the sandbox that builds the template, and the ID of the new template. */
  readonly shape: Shape
  /** ID of the parent template, or the image to start from. */
  readonly parent: string | ImageSource
  /** Owner of the uploaded files. Builds only reuse layers of builds with the same owner. */
  readonly ownerId: string
  readonly steps: readonly BuildStep[]
  readonly force: boolean
  /** Absent: the start command of the parent. */
  readonly startCommand?: string | undefined
  readonly readyCommand?: string | undefined
}

export interface BuildStep {
  readonly type: string
  readonly args: readonly string[]
  readonly filesHash?: string | undefined
  readonly force: boolean
}

export interface PlannedStep {
  /** Step number, counted from 1. */
  readonly step: string
  /** Shown in the build log. */
  readonly title: string
  /** Command to run in the sandbox. Absent when the step only changes the setup. */
  readonly command?: StepCommand
  /** Setup after this step. */
  readonly setup: Setup
  /** Whether this step and all later ones must run again instead of reusing a cached layer. */
  readonly isForced: boolean
}

export interface StepCommand extends Command {
  /** Hash of the archive that must be put at `archivePath` before the command runs. */
  readonly filesHash?: string
}

/** Returns the setup of the finished template. A new start command does not inherit the parent's ready command. */
export function finalSetup(
  request: BuildRequest,
  parent: Setup,
  last: PlannedStep | undefined,
): Setup {
  const { startCommand = parent.startCommand } = request
  const inherited = request.startCommand === undefined ? parent.readyCommand : undefined
  const { readyCommand = inherited } = request
  const { startCommand: _start, readyCommand: _ready, ...rest } = last?.setup ?? parent
  return {
    ...rest,
    ...(startCommand !== undefined && { startCommand }),
    ...(readyCommand !== undefined && { readyCommand }),
  }
}

/** Returns the cache key of a layer. Equal keys mean the same work on the same files for the same owner. */
export function layerKey(ownerId: string, below: string, command: StepCommand): string {
  return createHash('sha256')
    .update(JSON.stringify([ownerId, below, command]))
    .digest('hex')
}

export function checkBuild({ shape, ownerId }: BuildRequest): void {
  checkId(shape.templateId)
  checkOwner(ownerId)
}

/** Rejects owners that are not safe in file names. */
export function checkOwner(ownerId: string): void {
  if (/^[a-z0-9-]{1,64}$/.test(ownerId)) return
  throw new Fault(
    'invalid',
    'bad_owner',
    'The owner of build files must consist of letters, digits and dashes',
  )
}
