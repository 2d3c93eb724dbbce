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
    const hint = 'add --help for usage'
    return { message: thrown.message, hint, exitCode: usageExitCode }
  }
  if (thrown instanceof Fault) return explainFault(thrown, args)
  return { message: messagesOf(thrown).join(': '), exitCode: 1 }
}

function explainFault(fault: Fault, args: readonly string[]): Failure {
  if (fault.reason === 'no_server') {
    const message = `${lowerFirst(fault.message)}: start it with \`npm start\``
    return {
      message,
      hint: 'if the server runs on another machine, set ATOLL_API_URL',
      exitCode: 1,
    }
  }
  return { message: fault.message, hint: hintFor(fault, args), exitCode: 1 }
}

function hintFor(fault: Fault, [group = '', command]: readonly string[]): string | undefined {
  const byReason = hintsByReason.get(fault.reason)
  if (byReason) return byReason
  // These commands work on the server itself, so hints for clients of a server do not apply.
  if (hostCommands.has(group)) return hostHints.get(fault.kind)
  if (fault.kind !== 'not_found') return hintsByKind.get(fault.kind)
  return listHints.get(`${group} ${command}`) ?? listHints.get(group)
}

const hostCommands: ReadonlySet<string> = new Set([
  ...['up', 'down', 'tls', 'service', 'logs', 'backup', 'restore'],
])

const hostHints: ReadonlyMap<FaultKind, string> = new Map([
  ['unavailable', '`atoll doctor` shows what this machine lacks'],
  ['internal', '`atoll doctor` shows what this machine lacks'],
])

const listHints: ReadonlyMap<string, string> = new Map([
  ['sandbox', '`atoll sandbox list` shows your sandboxes'],
  ['sb', '`atoll sandbox list` shows your sandboxes'],
  [
    'sandbox create',
    '`atoll template list` and `atoll snapshot list` show what you can create from',
  ],
  ['sb create', '`atoll template list` and `atoll snapshot list` show what you can create from'],
  ['snapshot', '`atoll snapshot list` shows your snapshots'],
  ['snapshot create', '`atoll sandbox list` shows your sandboxes'],
  ['template', '`atoll template list` shows your templates'],
  ['tpl', '`atoll template list` shows your templates'],
  ['secret', '`atoll secret list` shows your secrets'],
  ['key', '`atoll key list` shows your keys'],
  ['node', '`atoll node list` shows the nodes'],
])

const hintsByReason: ReadonlyMap<string, string> = new Map([
  [
    'no_key',
    'start the server with `npm start` and run this command as root, or set ATOLL_API_KEY',
  ],
  ['no_systemd', '`atoll service install --print` prints the unit'],
  ['no_admin_token', 'the server takes the token from ATOLL_ADMIN_TOKEN when it starts'],
  ['process_unauthenticated', '--user must be a user that exists in the sandbox'],
  ['not_a_terminal', 'to run a single command, use `atoll sandbox exec`'],
  ['sandbox_paused', '`atoll sandbox resume <id>` resumes it'],
  ['copy_source_absent', '`atoll sandbox exec <id> ls` shows the files of the sandbox'],
  ['build_failed', '`atoll template logs <template>` prints the log of the build again'],
  ['disk_full', '`atoll status` shows what takes space; delete sandboxes or snapshots'],
  [
    'memory_not_kept',
    'add --no-memory to keep the files only; a resume then boots the sandbox from them',
  ],
  [
    'sandbox_lost',
    'the sandbox was killed, reached its timeout, or the server stopped; see `atoll status`',
  ],
])

const hintsByKind: ReadonlyMap<FaultKind, string> = new Map([
  ['unauthenticated', 'check ATOLL_API_KEY, or unset it to use the key of the local server'],
  ['exhausted', 'end sandboxes that you no longer need: `atoll sandbox kill <id>`'],
  ['unavailable', '`atoll status` shows whether the server is up'],
  ['timeout', '`atoll status` shows whether the server is up'],
  ['internal', 'the server log has the details'],
])

/** Returns the messages of the error and of all its causes. */
function messagesOf(thrown: unknown): string[] {
  if (!(thrown instanceof Error)) return [String(thrown)]
  return [thrown.message, ...(thrown.cause === undefined ? [] : messagesOf(thrown.cause))]
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1)
}
