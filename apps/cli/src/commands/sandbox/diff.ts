import type { PlatformClient } from '@atoll/client/platform'
import type * as replies from '@atoll/client/replies'
import { FileChange } from '@atoll/contracts/sandboxes/changes'
import { Fault } from '@atoll/kit/fault'
import { diffText, formatHunks } from '@atoll/kit/text-diff'
import { z } from 'zod'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { visibleName, visibleText } from '../../output/visible-text.ts'

export function diffCommand(context: CliContext): CliCommand {
  return new CliCommand('diff')
    .description('show the files that a sandbox added, modified or deleted since its template')
    .argument('<id>', 'sandbox ID; a paused sandbox is not woken')
    .argument('[path]', 'print the differences of this file, or of all files in this directory')
    .option('--with <id>', 'compare with this sandbox instead of the template')
    .option('-l, --list', 'print only which files differ, also with a path')
    .json(z.array(FileChange), 'print the list as JSON')
    .details(help)
    .action((id: string, path: string | undefined, options: DiffOptions) =>
      diff(context, id, path, options),
    )
}

interface DiffOptions {
  readonly list?: boolean
  readonly with?: string
  readonly json?: boolean
}

/** Each file is a request of its own. */
const maxFiles = 200

async function diff(
  context: CliContext,
  id: string,
  path: string | undefined,
  { list, json, with: otherId }: DiffOptions,
) {
  const { stdout, stderr } = context
  const { platform } = await openPlatform(context)
  const { changes, isComplete } = await listAll(platform, id, { path, with: otherId })
  if (!isComplete) {
    printLine(stderr, 'The list is not complete: directories are too large or too deep.')
  }
  if (json) return printJson(stdout, changes)
  if (list || path === undefined) {
    for (const { kind, path: file, type } of changes) {
      printLine(stdout, `${letters[kind]} ${visibleName(file)}${type === 'directory' ? '/' : ''}`)
    }
    return
  }
  const files = changes.filter(({ type }) => type !== 'directory')
  for (const change of files.slice(0, maxFiles)) {
    const sides = await readIfChanged(platform, id, { path: change.path, with: otherId })
    if (sides) printLine(stdout, formatFile(sides, change))
    else printLine(stderr, `${visibleName(change.path)} cannot be compared: it changed meanwhile.`)
  }
  if (files.length > maxFiles) {
    const rest = files.length - maxFiles
    printLine(stderr, `${rest} more files differ: name a smaller directory, or use --list.`)
  }
}

/** Returns undefined if the sandbox has removed or restored the file since it was listed. */
async function readIfChanged(
  platform: PlatformClient,
  id: string,
  query: { readonly path: string; readonly with: string | undefined },
) {
  try {
    return await platform.readFileChange(id, query)
  } catch (error) {
    if (error instanceof Fault && error.kind === 'not_found') return undefined
    throw error
  }
}

const letters = { added: 'A', modified: 'M', deleted: 'D' } as const

async function listAll(
  platform: PlatformClient,
  id: string,
  query: { readonly path: string | undefined; readonly with: string | undefined },
): Promise<Pick<replies.FileChanges, 'changes' | 'isComplete'>> {
  const changes: replies.FileChange[] = []
  let isComplete = true
  let nextToken: string | undefined
  do {
    const page = await platform.listFileChanges(id, { ...query, limit: 1000, nextToken })
    changes.push(...page.changes)
    isComplete &&= page.isComplete
    nextToken = page.nextToken
  } while (nextToken !== undefined)
  return { changes, isComplete }
}

function formatFile({ before, after }: replies.ChangedFile, { path }: replies.FileChange): string {
  const name = visibleName(path)
  const head = [
    `--- ${before ? `a${name}` : '/dev/null'}`,
    `+++ ${after ? `b${name}` : '/dev/null'}`,
  ]
  const modes =
    before && after && before.mode !== after.mode
      ? [`mode ${before.mode.toString(8)} → ${after.mode.toString(8)}`]
      : []
  if (before?.isTruncated || after?.isTruncated) {
    return [...head, ...modes, 'The file is larger than 1 MiB: not compared'].join('\n')
  }
  if ((before && before.content === undefined) || (after && after.content === undefined)) {
    return [...head, ...modes, 'Binary files differ'].join('\n')
  }
  const hunks = formatHunks(diffText(before?.content ?? '', after?.content ?? ''))
  return [...head, ...modes, ...hunks.map(visibleText)].join('\n')
}

const help = `
Without a path it prints one line per file: A added, M modified, D deleted.

With --with it shows what the sandbox has added, modified or deleted compared with the other one. Both must be from the
same template build; forks are.

Examples:
  atoll sandbox diff i1a2b3c4
  atoll sandbox diff i1a2b3c4 /home/user
  atoll sandbox diff i1a2b3c4 /etc/hosts
  atoll sandbox diff i1a2b3c4 --with i5e6f7g8
`
