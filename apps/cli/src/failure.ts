import { Fault } from '@atoll/kit/fault'
import type { FaultKind } from '@atoll/kit/fault'
import { CommanderError } from 'commander'

/** Turns any error of a command into a message, an optional hint and an exit code. */

export interface Failure {
  /** Empty if commander has already printed the error. */
  readonly message: string
  readonly hint?: string | undefined
  readonly exitCode: number
}

/** A mistake on the command line that commander does not detect. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

const usageExitCode = 2

export function explain(thrown: unknown, args: readonly string[]): Failure {
  if (thrown instanceof CommanderError) {
    return { message: '', exitCode: thrown.exitCode === 0 ? 0 : usageExitCode }
  }
  if (thrown instanceof UsageError) {
    const hint = 'add --help to see how this command is used'
    return { message: thrown.message, hint, exitCode: usageExitCode }
  }
  if (thrown instanceof Fault) return explainFault(thrown, args)
  return { message: messagesOf(thrown).join(': '), exitCode: 1 }
}

function explainFault(fault: Fault, args: readonly string[]): Failure {
  if (fault.reason === 'no_server') {
    const message = `${lowerFirst(fault.message)}: start it with \`npm start\``
    return { message, hint: 'if it runs elsewhere, set ATOLL_API_URL', exitCode: 1 }
  }
  return { message: fault.message, hint: hintFor(fault, args), exitCode: 1 }
}

function hintFor(fault: Fault, [group = '', command]: readonly string[]): string | undefined {
  const byReason = hintsByReason.get(fault.reason)
  if (byReason) return byReason
  // `up` and `down` run the server, so hints for clients of a server do not apply.
  if (hostCommands.has(group)) return hostHints.get(fault.kind)
  if (fault.kind !== 'not_found') return hintsByKind.get(fault.kind)
  return listHints.get(`${group} ${command}`) ?? listHints.get(group)
}

const hostCommands: ReadonlySet<string> = new Set(['up', 'down'])

const hostHints: ReadonlyMap<FaultKind, string> = new Map([
  ['unavailable', '`atoll doctor` tells what this machine lacks'],
  ['internal', '`atoll doctor` tells what this machine lacks'],
])

const listHints: ReadonlyMap<string, string> = new Map([
  ['sandbox', '`atoll sandbox list` shows what there is'],
  ['sb', '`atoll sandbox list` shows what there is'],
  ['sandbox create', '`atoll snapshot list` shows the snapshots that can be used'],
  ['sb create', '`atoll snapshot list` shows the snapshots that can be used'],
  ['snapshot', '`atoll snapshot list` shows what there is'],
  ['snapshot create', '`atoll sandbox list` shows what there is'],
  ['key', '`atoll key list` shows what there is'],
])

const hintsByReason: ReadonlyMap<string, string> = new Map([
  ['no_key', 'start the server with `npm start` and run this as root, or set ATOLL_API_KEY'],
  ['process_unauthenticated', '--user must name a user that the sandbox has'],
  ['not_a_terminal', 'run single commands with `atoll sandbox exec`'],
  ['sandbox_paused', '`atoll sandbox resume <id>` lets it go on'],
  ['disk_full', '`atoll status` shows what takes space; delete sandboxes or snapshots'],
  ['memory_not_kept', 'add --no-memory: a resume then boots it anew from its files'],
  ['sandbox_lost', 'it was killed, ran out of time, or the server went away; see `atoll status`'],
])

const hintsByKind: ReadonlyMap<FaultKind, string> = new Map([
  ['unauthenticated', 'check ATOLL_API_KEY, or leave it unset to use the key of the local server'],
  ['exhausted', 'end sandboxes you no longer need with `atoll sandbox kill`'],
  ['unavailable', '`atoll status` tells whether the server is well'],
  ['timeout', '`atoll status` tells whether the server is well'],
  ['internal', 'the log of the server has the details'],
])

/** Returns the messages of the error and of all its causes. */
function messagesOf(thrown: unknown): string[] {
  if (!(thrown instanceof Error)) return [String(thrown)]
  return [thrown.message, ...(thrown.cause === undefined ? [] : messagesOf(thrown.cause))]
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1)
}
