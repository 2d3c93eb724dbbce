import type { PlatformClient } from '@atoll/client/platform'
import { Command } from 'commander'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { UsageError } from '../../failure.ts'
import { formatRelative, formatTable } from '../../table.ts'

export function tagCommand(context: CliContext): Command {
  return new Command('tag')
    .description('add tags to a snapshot, delete tags, or list the tags of a name')
    .argument('<snapshot>', 'snapshot ID or name, with or without a tag')
    .argument('[tags...]', 'tags to set on this snapshot; without any, lists tags')
    .option('-d, --delete', 'delete these tags; the snapshot stays')
    .option('--json', 'print the list as JSON')
    .addHelpText('after', help)
    .action((snapshot: string, tags: string[], options: TagOptions) =>
      tag(context, { snapshot, tags, ...options }),
    )
}

interface TagOptions {
  readonly delete?: boolean
  readonly json?: boolean
}

interface TagRequest extends TagOptions {
  readonly snapshot: string
  readonly tags: readonly string[]
}

async function tag(context: CliContext, request: TagRequest) {
  const { snapshot, tags } = request
  if (request.delete && tags.length === 0) throw new UsageError('Missing tags to delete.')
  const { platform } = await openPlatform(context)
  if (request.delete) {
    await platform.untagSnapshot(snapshot, tags)
    return printLine(context.stdout, `untagged ${snapshot}: ${tags.join(', ')}`)
  }
  if (tags.length > 0) {
    await platform.tagSnapshot(snapshot, tags)
    return printLine(context.stdout, `tagged ${snapshot}: ${tags.join(', ')}`)
  }
  await listTags(context, platform, request)
}

async function listTags({ stdout }: CliContext, platform: PlatformClient, request: TagRequest) {
  const found = await platform.listSnapshotTags(request.snapshot)
  if (request.json) return printJson(stdout, found)
  const now = new Date()
  const rows = found.map(({ tag: name, buildID, createdAt }) => [
    name,
    formatRelative(createdAt, now),
    buildID,
  ])
  printLine(stdout, formatTable(stdout, ['TAG', 'SET', 'BUILD'], rows))
}

const help = `
Tags with the same build belong to the same snapshot. A name without a tag means the tag
\`default\`.

Examples:
  atoll snapshot tag tools:v2 stable default
  atoll snapshot tag tools
  atoll snapshot tag --delete tools stable`
