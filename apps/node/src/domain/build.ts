import { createHash } from 'node:crypto'
import { Fault } from '@atoll/kit/fault'
import { checkId } from './cell.ts'
import type { Shape } from './cell.ts'
import type { Command } from './commands.ts'
import type { ImageSource } from './image.ts'
import type { Setup } from './setup.ts'

/** How a template is made of another one. */
export interface BuildRequest {
  /** What it is for, and under which id it will be known. */
  readonly shape: Shape
  /** The template that it is made of, or the image. */
  readonly parent: string | ImageSource
  /** Whose files the steps name, and whose earlier builds they may share layers with. */
  readonly ownerId: string
  readonly steps: readonly BuildStep[]
  readonly force: boolean
  /** Absent: that of the parent. */
  readonly startCommand?: string | undefined
  readonly readyCommand?: string | undefined
}

export interface BuildStep {
  readonly type: string
  readonly args: readonly string[]
  readonly filesHash?: string | undefined
  readonly force: boolean
}

/** Why a build cannot go on, for whoever wrote its steps. */
export class BuildError extends Error {
  override readonly name = 'BuildError'
  readonly step: string

  constructor(step: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.step = step
  }
}

/** What one step comes to. */
export interface PlannedStep {
  /** The number of the step, counted from one. */
  readonly step: string
  /** As logs show it. */
  readonly title: string
  /** What is done in a sandbox; absent where only the setup changes. */
  readonly work?: Work
  /** In force from here on. */
  readonly setup: Setup
  /** No layer of an earlier build may stand in for this one or a later one. */
  readonly isForced: boolean
}

export interface Work extends Command {
  /** An archive that has to lie in the sandbox, at the path that `build-scripts.ts` gives. */
  readonly filesHash?: string
}

/** The setup of the whole, when all steps are done. A program that was given is not waited for by the parent's means. */
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

/** The same for the same work on the same files for the same owner. */
export function keyOf(ownerId: string, below: string, work: Work): string {
  return createHash('sha256')
    .update(JSON.stringify([ownerId, below, work]))
    .digest('hex')
}

export function checkBuild({ shape, ownerId }: BuildRequest): void {
  checkId(shape.templateId)
  checkOwner(ownerId)
}

/** Becomes part of file names. */
export function checkOwner(ownerId: string): void {
  if (/^[a-z0-9-]{1,64}$/.test(ownerId)) return
  throw new Fault('invalid', 'bad_owner', 'An owner has letters, digits and dashes')
}
