import { TemplateTag } from '@atoll/contracts/templates/tags'
import { z } from 'zod'
import type { PlatformClient } from '@atoll/client/platform'
import { openPlatform, printJson, printLine } from '../../context.ts'
import type { CliContext } from '../../context.ts'
import { CliCommand } from '../../declare/command.ts'
import { UsageError } from '../../failure.ts'
import { formatRelative, printTable } from '../../output/table.ts'

/** Declares `tag` of snapshots and of templates, which the server treats alike. */
export function tagCommand(context: CliContext, kind: 'snapshot' | 'template'): CliCommand {
  return new CliCommand('tag')
    .description(`add tags to a ${kind}, delete tags, or list the tags of a name`)
    .argument(`<${kind}>`, `${kind} ID or name, with or without a tag`)
    .argument('[tags...]', `tags to set on this ${kind}; without any, lists tags`)
    .option('-d, --delete', `delete these tags; the ${kind} stays`)
    .json(z.array(TemplateTag), 'print the list as JSON')
    .details(helpOf(kind))
    .action((reference: string, tags: string[], options: TagOptions) =>
      tag(context, { reference, tags, ...options }),
    )
}

interface TagOptions {
  readonly delete?: boolean
  readonly json?: boolean
}

interface TagRequest extends TagOptions {
  readonly reference: string
  readonly tags: readonly string[]
}

async function tag(context: CliContext, request: TagRequest) {
  const { reference, tags } = request
  if (request.delete && tags.length === 0) throw new UsageError('Missing tags to delete.')
  const { platform } = await openPlatform(context)
  if (request.delete) {
    await platform.untagSnapshot(reference, tags)
    return printLine(context.stdout, `untagged ${reference}: ${tags.join(', ')}`)
  }
  if (tags.length > 0) {
    await platform.tagSnapshot(reference, tags)
    return printLine(context.stdout, `tagged ${reference}: ${tags.join(', ')}`)
  }
  await listTags(context, platform, request)
}

async function listTags({ stdout }: CliContext, platform: PlatformClient, request: TagRequest) {
  const found = await platform.listSnapshotTags(request.reference)
  if (request.json) return printJson(stdout, found)
  const now = new Date()
  const rows = found.map(({ tag: name, buildID, createdAt }) => [
    name,
    formatRelative(createdAt, now),
    buildID,
  ])
  printTable(stdout, ['TAG', 'SET', 'BUILD'], rows)
}

function helpOf(kind: string): string {
  return `
Tags with the same build belong to the same ${kind}. A name without a tag means the tag
\`default\`.

Examples:
  atoll ${kind} tag tools:v2 stable default
  atoll ${kind} tag tools
  atoll ${kind} tag --delete tools stable`
}
