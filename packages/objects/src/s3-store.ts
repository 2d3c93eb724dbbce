import { PassThrough, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import {
  AbortMultipartUploadCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { NodeHttpHandler } from '@smithy/node-http-handler'
import type { ObjectStore } from './object-store.ts'
import { asObjectFault, statusOf } from './s3-errors.ts'
import type { ObjectSettings } from './settings.ts'
import { createServerTime } from './server-time.ts'

interface RequestLimits {
  /** Attempts per request, with increasing waits in between. */
  readonly attempts: number
  /** An attempt fails when the store neither takes nor sends a byte for this long. */
  readonly idleMs: number
}

const usualLimits: RequestLimits = { attempts: 4, idleMs: 30_000 }
const connectLimitMs = 5_000
/** S3 allows 10,000 pieces per object, so this limits an object to 160 GB. */
const pieceBytes = 16 * 1024 * 1024
const piecesAtOnce = 2
/** Limit of the S3 API. */
const deletesAtOnce = 1_000

export interface S3Store extends ObjectStore {
  close(): void
}

export function createS3Store(settings: ObjectSettings, limits = usualLimits): S3Store {
  const client = createClient(settings, limits)
  const place = { client, bucket: settings.bucket, prefix: settings.prefix }
  return {
    ...translateErrors({
      ...writeMethods(place),
      ...readMethods(place),
      ...clockMethods(place),
      ...removeMethods(place),
    }),
    close: () => client.destroy(),
  }
}

interface Place {
  readonly client: S3Client
  readonly bucket: string
  readonly prefix: string
}

function at({ bucket, prefix }: Place, key: string) {
  return { Bucket: bucket, Key: `${prefix}${key}` }
}

function options(signal: AbortSignal | undefined) {
  return { ...(signal && { abortSignal: signal }) }
}

/** A bucket that does not exist is no proof that an object does not. */
function undefinedIfAbsent(error: unknown): undefined {
  const isBucket = error instanceof Error && error.name === 'NoSuchBucket'
  if (statusOf(error) === 404 && !isBucket) return undefined
  throw error
}

function writeMethods(place: Place): Pick<ObjectStore, 'create' | 'upload'> {
  const { client } = place
  return {
    async create(key, body, signal) {
      const request = new PutObjectCommand({ ...at(place, key), Body: body, IfNoneMatch: '*' })
      return client.send(request, options(signal)).then(
        () => true,
        (error: unknown) => {
          if (statusOf(error) === 412) return false
          throw error
        },
      )
    },

    async upload(key, body, signal) {
      signal?.throwIfAborted()
      // A source that fails destroys the stream, which ends the upload.
      const stream = new PassThrough()
      const upload = new Upload({
        client,
        params: { ...at(place, key), Body: stream },
        partSize: pieceBytes,
        queueSize: piecesAtOnce,
      })
      const abort = () => void upload.abort()
      signal?.addEventListener('abort', abort)
      const piped = pipeline(Readable.from(body, { objectMode: false }), stream)
      let reason: unknown
      const note = (error: unknown) => void (reason ??= error)
      try {
        // The first failure ends the other side, and is the reason.
        const sent = upload.done().catch((error: unknown) => {
          note(error)
          stream.destroy()
        })
        await Promise.all([sent, piped.catch(note)])
        if (reason !== undefined) throw reason
      } finally {
        signal?.removeEventListener('abort', abort)
      }
    },
  }
}

function readMethods(
  place: Place,
): Pick<ObjectStore, 'read' | 'open' | 'size' | 'list' | 'listAfter'> {
  const { client, bucket, prefix } = place
  const get = (key: string, signal: AbortSignal | undefined) =>
    client.send(new GetObjectCommand(at(place, key)), options(signal)).catch(undefinedIfAbsent)
  return {
    async read(key, maxBytes, signal) {
      const found = await get(key, signal)
      if (!found) return undefined
      const chunks: Buffer[] = []
      let bytes = 0
      for await (const chunk of bodyOf(found)) {
        bytes += chunk.length
        if (bytes > maxBytes) throw new Error(`${key} is larger than ${maxBytes} bytes`)
        chunks.push(chunk)
      }
      return Buffer.concat(chunks)
    },

    async open(key, signal) {
      const found = await get(key, signal)
      return found && translated(bodyOf(found), asObjectFault)
    },

    async size(key, signal) {
      const request = new HeadObjectCommand(at(place, key))
      const found = await client.send(request, options(signal)).catch(undefinedIfAbsent)
      return found?.ContentLength
    },

    async list(wanted, signal) {
      const keys: string[] = []
      let token: string | undefined
      do {
        const page = await client.send(
          new ListObjectsV2Command({
            Bucket: bucket,
            Prefix: `${prefix}${wanted}`,
            ...(token !== undefined && { ContinuationToken: token }),
          }),
          options(signal),
        )
        for (const { Key = '' } of page.Contents ?? []) keys.push(Key.slice(prefix.length))
        token = page.IsTruncated === true ? page.NextContinuationToken : undefined
      } while (token !== undefined)
      return keys
    },

    async listAfter(wanted, after, signal) {
      const request = new ListObjectsV2Command({
        ...{ Bucket: bucket, Prefix: `${prefix}${wanted}` },
        ...(after !== '' && { StartAfter: `${prefix}${after}` }),
      })
      const { Contents = [] } = await client.send(request, options(signal))
      return Contents.map(({ Key = '' }) => Key.slice(prefix.length))
    },
  }
}

function clockMethods(place: Place): Pick<ObjectStore, 'nowMs' | 'ageMs'> {
  const { client, bucket, prefix } = place
  return {
    async nowMs(signal) {
      const request = new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix, MaxKeys: 1 })
      const serverTime = createServerTime()
      request.middlewareStack.add(serverTime.middleware, { step: 'deserialize' })
      await client.send(request, options(signal))
      return serverTime.readMs()
    },

    async ageMs(key, signal) {
      const request = new HeadObjectCommand(at(place, key))
      const serverTime = createServerTime()
      request.middlewareStack.add(serverTime.middleware, { step: 'deserialize' })
      const found = await client.send(request, options(signal)).catch(undefinedIfAbsent)
      if (!found) return undefined
      const writtenMs = found.LastModified?.getTime() ?? Number.NaN
      if (Number.isNaN(writtenMs)) throw new Error(`the store sent no Last-Modified for ${key}`)
      return serverTime.readMs() - writtenMs
    },
  }
}

function removeMethods(place: Place): Pick<ObjectStore, 'delete' | 'abandonUploads'> {
  const { client, bucket: Bucket, prefix } = place
  return {
    async delete(keys, signal) {
      for (let from = 0; from < keys.length; from += deletesAtOnce) {
        const batch = keys.slice(from, from + deletesAtOnce)
        const Objects = batch.map((key) => ({ Key: `${prefix}${key}` }))
        const { Errors = [] } = await client.send(
          new DeleteObjectsCommand({ Bucket, Delete: { Objects, Quiet: true } }),
          options(signal),
        )
        const [first] = Errors.filter(({ Code }) => Code !== 'NoSuchKey')
        if (first) throw new Error(`${first.Key}: ${first.Code} ${first.Message ?? ''}`)
      }
    },

    async abandonUploads(wanted, signal) {
      // A page has up to 1,000 uploads, far more than can be of one bundle.
      const { Uploads = [] } = await client.send(
        new ListMultipartUploadsCommand({ Bucket, Prefix: `${prefix}${wanted}` }),
        options(signal),
      )
      for (const { Key, UploadId } of Uploads) {
        const request = new AbortMultipartUploadCommand({ Bucket, Key, UploadId })
        await client.send(request, options(signal)).catch(undefinedIfAbsent)
      }
    },
  }
}

function translateErrors(methods: ObjectStore): ObjectStore {
  const translate =
    <Args extends unknown[], Result>(method: (...args: Args) => Promise<Result>) =>
    (...args: Args): Promise<Result> =>
      method(...args).catch((error: unknown) => {
        throw asObjectFault(error)
      })
  return {
    create: translate(methods.create),
    upload: translate(methods.upload),
    read: translate(methods.read),
    open: translate(methods.open),
    size: translate(methods.size),
    list: translate(methods.list),
    listAfter: translate(methods.listAfter),
    nowMs: translate(methods.nowMs),
    ageMs: translate(methods.ageMs),
    delete: translate(methods.delete),
    abandonUploads: translate(methods.abandonUploads),
  }
}

function createClient(settings: ObjectSettings, { attempts, idleMs }: RequestLimits): S3Client {
  const { endpoint, region, accessKeyId, secretAccessKey, pathStyle } = settings
  return new S3Client({
    region,
    ...(endpoint !== undefined && { endpoint }),
    credentials: { accessKeyId, secretAccessKey },
    forcePathStyle: pathStyle,
    maxAttempts: attempts,
    requestHandler: new NodeHttpHandler({
      connectionTimeout: connectLimitMs,
      // Not `requestTimeout`: that limits the whole time of a request, so a slow store would never get a large piece.
      socketTimeout: idleMs,
    }),
    // Other stores than that of AWS refuse the newer checksums. The signature covers the content, and manifests have hashes.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  })
}

function bodyOf({ Body }: { readonly Body?: unknown }): AsyncIterable<Buffer> {
  if (Body instanceof Readable) return Body
  throw new Error('the object store sent no content')
}

async function* translated(
  source: AsyncIterable<Uint8Array>,
  translate: (error: unknown) => unknown,
): AsyncGenerator<Uint8Array> {
  try {
    yield* source
  } catch (error) {
    throw translate(error)
  }
}
