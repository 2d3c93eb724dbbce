import { timingSafeEqual } from 'node:crypto'
import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import type { BuildFiles } from '../../domain/builds/build-node.ts'
import { buildFilesSignature } from '../../domain/teams/key.ts'
import type { TemplateStore } from '../../domain/template.ts'
import type { BuildHome } from './build-home.ts'
import { findOwnTemplate } from '../templates/own-template.ts'

/** Uploads of files for build steps. A permit authorizes an upload without an API key for 30 minutes. */
export interface BuildFileTransfer {
  find(
    teamId: string,
    templateId: string,
    hash: string,
  ): Promise<{ readonly present: boolean; readonly permit: FilesPermit }>
  /** Throws a `forbidden` fault when the signature is wrong or the permit has expired. */
  check(permit: FilesPermit): void
  put(files: BuildFiles, archive: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void>
}

export interface FilesPermit extends BuildFiles {
  readonly expiresAt: Date
  readonly signature: string
}

const permitMs = 30 * 60 * 1000
const findTimeoutMs = 10_000
const putTimeoutMs = 60 * 60 * 1000

export function createBuildFileTransfer(ports: {
  readonly templates: TemplateStore
  readonly homeOf: BuildHome
  readonly tokenSeed: string
  readonly clock: Clock
}): BuildFileTransfer {
  const { templates, homeOf, tokenSeed, clock } = ports
  const sign = (files: BuildFiles, expiresAt: Date): string =>
    buildFilesSignature(tokenSeed, { ...files, expiresAt })
  return {
    async find(teamId, templateId, hash) {
      await findOwnTemplate(templates, templateId, teamId)
      const files = { teamId, hash }
      const present = await homeOf(teamId)
        .then((home) => home.builds.hasFiles(files, AbortSignal.timeout(findTimeoutMs)))
        .catch((cause: unknown) => nodeUnavailable(cause))
      const expiresAt = new Date(clock.now().getTime() + permitMs)
      return { present, permit: { ...files, expiresAt, signature: sign(files, expiresAt) } }
    },
    check({ expiresAt, signature, ...files }) {
      if (!isSame(signature, sign(files, expiresAt))) {
        throw refused('The signature of the URL is wrong: use the URL unchanged')
      }
      if (clock.now() < expiresAt) return
      throw refused(
        'The URL is older than 30 minutes: get another from GET /templates/{templateID}/files/{hash}',
      )
    },
    async put(files, archive, signal) {
      const home = await homeOf(files.teamId)
      const limit = AbortSignal.any([signal, AbortSignal.timeout(putTimeoutMs)])
      await home.builds.putFiles(files, archive, limit)
    },
  }
}

function isSame(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}

function refused(message: string): Fault {
  return new Fault('forbidden', 'permit_invalid', message)
}

function nodeUnavailable(cause: unknown): never {
  throw new Fault(
    'unavailable',
    'node_unavailable',
    'The node that stores the files does not answer; try again later',
    { cause },
  )
}
