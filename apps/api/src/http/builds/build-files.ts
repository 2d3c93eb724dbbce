import { buildFilesPath } from '@atoll/contracts/builds/request'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { BuildFileTransfer, FilesPermit } from '../../app/builds/build-files.ts'
import { parseInput } from '../server/input.ts'

/**
 * Upload URL for build files. Not an operation of the contract, since clients use the URL as they got it. Threats: the
 * sender has no API key, so the permit is checked before the body is read; the archive may have any size, so it is
 * streamed to the node and never stored here.
 */

export function toUploadUrl(origin: string, permit: FilesPermit): string {
  const { teamId, hash, expiresAt, signature } = permit
  const query = new URLSearchParams({
    team: teamId,
    expires: String(expiresAt.getTime()),
    signature,
  })
  return `${origin}${buildFilesPath}/${hash}?${query.toString()}`
}

const Permit = z
  .object({
    hash: z.string().regex(/^[0-9a-f]{64}$/),
    team: z.string().max(64),
    expires: z.string().regex(/^[0-9]{1,15}$/),
    signature: z.string().max(64),
  })
  .transform(({ hash, team, expires, signature }) => ({
    hash,
    teamId: team,
    expiresAt: new Date(Number(expires)),
    signature,
  }))

export function addUploadRoute(
  server: FastifyInstance,
  { files, limitBytes }: { readonly files: BuildFileTransfer; readonly limitBytes: number },
): void {
  // Separate scope: everywhere else, bodies are JSON and read completely.
  server.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, archive, done) => done(null, archive))
    scope.route({
      method: 'PUT',
      url: `${buildFilesPath}/:hash`,
      config: { operation: 'template.upload' },
      async onRequest(request, reply) {
        files.check(readPermit(request))
        return checkLength(request, reply, limitBytes)
      },
      async handler(request, reply) {
        const { teamId, hash } = readPermit(request)
        const gone = new AbortController()
        reply.raw.once('close', () => {
          if (!reply.raw.writableFinished) gone.abort()
        })
        // Do not destroy the request when the node rejects the upload early: the response uses the same connection.
        const archive = request.raw.iterator({ destroyOnReturn: false })
        await files.put({ teamId, hash }, archive, gone.signal)
        return reply.code(201).send()
      },
    })
  })
}

function readPermit({ params, query }: FastifyRequest): FilesPermit {
  return parseInput(Permit, { ...Object(query), ...Object(params) }, 'query')
}

/** Checks the announced length. Node.js enforces that the body is not longer. */
function checkLength(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  limitBytes: number,
): FastifyReply | undefined {
  const length = headers['content-length']
  if (length === undefined) {
    const message = 'Content-Length is missing: send the archive with its length, not in chunks'
    return reply.code(411).send({ code: 411, message })
  }
  if (Number(length) <= limitBytes) return undefined
  const message = `The archive is too large: at most ${limitBytes / 1024 / 1024} MiB are accepted`
  return reply.code(413).send({ code: 413, message })
}
