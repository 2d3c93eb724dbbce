/** POST /files/compose: concatenates files that were uploaded in parts. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Fault } from '@atoll/kit/fault'
import type { MetadataStore } from '../../domain/files/metadata-store.ts'
import type { RegularFiles } from '../../domain/files/regular-file.ts'
import { sendJson } from '../wire/responses.ts'
import type { FileContext } from './file-context.ts'
import { readJson } from '../wire/json-body.ts'
import { entryOf } from './upload.ts'

export interface ComposeParts {
  readonly files: RegularFiles
  readonly metadata: Pick<MetadataStore, 'replace'>
  readonly openCall: (username: string | undefined) => Promise<FileContext>
}

export async function handleCompose(
  request: IncomingMessage,
  response: ServerResponse,
  { files, metadata, openCall }: ComposeParts,
): Promise<void> {
  const body = parseComposeRequest(await readJson(request, bodyLimitBytes))
  const call = await openCall(body.username)
  const destination = call.resolve(body.destination)
  const sources = body.sources.map((source) => call.resolve(source))
  if (sources.includes(destination)) refuse('The destination is also a source. Use another path.')
  await files.concatenate(sources, destination, call.user)
  await metadata.replace(destination, {})
  sendJson(response, entryOf(destination))
}

interface ComposeRequest {
  readonly sources: readonly string[]
  readonly destination: string
  readonly username: string | undefined
}

function parseComposeRequest(body: unknown): ComposeRequest {
  if (!isObject(body)) refuse('The request body must be a JSON object')
  const { source_paths: sources, destination, username } = body
  if (!isStringList(sources)) refuse('source_paths must be a list of strings')
  if (sources.length === 0) refuse('source_paths is empty. Name at least one file.')
  if (sources.length > sourceLimit) refuse(`source_paths exceeds the limit of ${sourceLimit} files`)
  if (typeof destination !== 'string' || destination === '') refuse('destination is missing')
  if (username !== undefined && username !== null && typeof username !== 'string') {
    refuse('username must be a string')
  }
  return { sources, destination, username: username ?? undefined }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isStringList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
}

const bodyLimitBytes = 4 * 1024 * 1024
const sourceLimit = 10_000

function refuse(message: string): never {
  throw new Fault('invalid', 'bad_compose', message)
}
