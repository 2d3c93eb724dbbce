/** POST /files: writes the body, or each file of a form, to its path. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { basename } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import { parseMetadataHeaders } from '../../domain/files/metadata-headers.ts'
import type { Metadata, MetadataStore } from '../../domain/files/metadata-store.ts'
import type { RegularFiles } from '../../domain/files/regular-file.ts'
import { sendJson } from '../wire/responses.ts'
import type { FileContext } from './file-context.ts'
import { parseMultipart } from './multipart.ts'
import { parseParameters } from './part-headers.ts'
import { uploadBody } from './upload-body.ts'

export interface UploadParts {
  readonly files: RegularFiles
  readonly metadata: Pick<MetadataStore, 'replace'>
  readonly call: FileContext
  /** Query parameter `path`. It overrides the filenames of a form. */
  readonly path: string | undefined
}

export async function handleUpload(
  request: IncomingMessage,
  response: ServerResponse,
  { files, metadata, call, path }: UploadParts,
): Promise<void> {
  const uploadMetadata = parseMetadataHeaders(request.rawHeaders)
  const written = new Map<string, UploadedEntry>()
  for await (const upload of uploadsOf(request, response, path)) {
    const target = call.resolve(upload.path)
    if (written.has(target)) {
      refuse(
        `The form contains '${target}' twice; only the first content was written. Send each path once.`,
      )
    }
    await files.write(target, upload.body, call.user)
    await metadata.replace(target, uploadMetadata)
    written.set(target, entryOf(target, uploadMetadata))
  }
  sendJson(response, [...written.values()])
}

export interface UploadedEntry {
  readonly path: string
  readonly name: string
  readonly type: 'file'
  readonly metadata?: Metadata
}

export function entryOf(path: string, metadata: Metadata = {}): UploadedEntry {
  const metadataField = Object.keys(metadata).length > 0 ? { metadata } : {}
  return { path, name: basename(path), type: 'file', ...metadataField }
}

interface Upload {
  readonly path: string
  readonly body: AsyncIterable<Buffer>
}

async function* uploadsOf(
  request: IncomingMessage,
  response: ServerResponse,
  path: string | undefined,
): AsyncGenerator<Upload> {
  const header = request.headers['content-type'] ?? ''
  const type = header.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (type === 'application/octet-stream') {
    if (path === undefined) refuse('The query parameter path is missing. Use /files?path=<path>.')
    yield { path, body: uploadBody(request, response) }
  } else if (type.startsWith('multipart/')) {
    const boundary = parseParameters(header).get('boundary')
    yield* filesOfForm(uploadBody(request, response), { boundary, path })
  } else
    refuse(
      `Content-Type '${type}' is not supported. Use multipart/form-data or application/octet-stream.`,
    )
}

async function* filesOfForm(
  form: AsyncIterable<Buffer>,
  { boundary, path }: { readonly boundary: string | undefined; readonly path: string | undefined },
): AsyncGenerator<Upload> {
  if (!boundary || boundary.length > boundaryLimit) {
    throw new Fault(
      'internal',
      'bad_multipart',
      `Content-Type needs a boundary of 1 to ${boundaryLimit} characters`,
    )
  }
  for await (const { name, filename, body } of parseMultipart(form, boundary)) {
    if (name !== 'file') continue
    const target = path ?? filename
    if (target === undefined)
      refuse('A form part has no filename. Add one, or set the query parameter path.')
    yield { path: target, body }
  }
}

/** More lenient than RFC 2046, which allows 70 characters. */
const boundaryLimit = 256

function refuse(message: string): never {
  throw new Fault('invalid', 'bad_upload', message)
}
