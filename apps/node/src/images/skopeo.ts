import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Runner, RunResult } from '@atoll/kit/run'
import { z } from 'zod'
import { byDigest, findRegistry } from '../domain/builds/image.ts'
import type { Image, Images, ImageSource, Registry } from '../domain/builds/image.ts'
import { parseJson, readManifest } from './manifest.ts'
import { readSkopeoError } from './skopeo-error.ts'
import { BuildError } from '../domain/builds/build-error.ts'

export interface SkopeoParts {
  readonly runner: Runner
  readonly registries: readonly Registry[]
  openScratch(): Promise<Scratch>
  /** Throws a fault when the machine has no space for this many more bytes and files. */
  checkRoom(bytes: number, files: number): Promise<void>
}

/** Temporary space; disposing it deletes its content. */
export interface Scratch extends AsyncDisposable {
  /** Folder on a disk of limited size, visible only to `runner`. */
  readonly disk: string
  /** Folder for small files of the server. */
  readonly dir: string
}

/**
 * Fetches images with skopeo. Threats: the content of an image is untrusted. It is unpacked on a disk of limited size,
 * each layer in an empty folder, and tar lets no name escape it. Passwords are in a file that only root can read, never
 * in arguments, which all users can see.
 */
export function createSkopeo(parts: SkopeoParts): Images {
  const { runner, registries, openScratch } = parts

  async function ask(
    source: ImageSource,
    dir: string,
    args: (options: readonly string[]) => readonly string[],
    signal: AbortSignal,
  ): Promise<string> {
    const registry = findRegistry(source, registries)
    const authFile = join(dir, 'auth.json')
    await writeFile(authFile, JSON.stringify(authOf(source, registry.name)), { mode: 0o600 })
    const options = [`--authfile=${authFile}`, ...(registry.isPlain ? ['--tls-verify=false'] : [])]
    const limits = { timeoutMs: pullLimitMs, signal }
    try {
      const result = await runner.tryRun('skopeo', args(options), limits)
      signal.throwIfAborted()
      if (result.code !== 0) throw unreadable(source, result)
      return result.stdout
    } finally {
      await rm(authFile, { force: true })
    }
  }

  /** Returns the digest of the image for this machine, after its manifest was checked. */
  async function resolve(source: ImageSource, dir: string, signal: AbortSignal): Promise<string> {
    const read = async (reference: string) => {
      const from = `docker://${reference}`
      return readManifest(
        await ask(source, dir, (options) => ['inspect', '--raw', ...options, from], signal),
      )
    }
    const { digest, ours } = await read(source.reference)
    return ours === undefined ? digest : (await read(byDigest(source, ours))).digest
  }

  return {
    async inspect(source, signal) {
      await using scratch = await openScratch()
      const digest = await resolve(source, scratch.dir, signal)
      const from = `docker://${byDigest(source, digest)}`
      const inspect = (options: readonly string[]) => ['inspect', '--config', ...options, from]
      return toImage(digest, await ask(source, scratch.dir, inspect, signal))
    },

    async pull(source, { digest }, signal) {
      await using opened = new AsyncDisposableStack()
      const { dir, disk } = opened.use(await openScratch())
      const image = join(disk, 'image')
      const copy = (options: readonly string[]) => [
        ...[`--tmpdir=${disk}`, 'copy', '--insecure-policy', '--quiet'],
        ...['--dest-decompress', '--retry-times=2'],
        // Login options apply only to the source; the destination is a folder.
        ...options.map((option) => option.replace(/^--(authfile|tls-verify)/, '--src-$1')),
        ...[`docker://${byDigest(source, digest)}`, `dir:${image}`],
      ]
      await ask(source, dir, copy, signal)
      const limits = { timeoutMs: pullLimitMs, signal }
      const runOn = async (program: string, args: readonly string[]) => {
        const result = await runner.tryRun(program, args, limits)
        signal.throwIfAborted()
        if (result.code !== 0) throw unusable(source, result)
        return result.stdout
      }
      const owned = opened.move()
      return {
        async unpack(layer, target) {
          const folder = join(disk, 'layer')
          await runOn('mkdir', ['--mode=755', folder])
          await runOn('tar', [...tarOptions, '--file', join(image, layer), '--directory', folder])
          const program = join(import.meta.dirname, '../linux/files/whiteouts.ts')
          await runOn(process.execPath, [program, folder])
          const bytes = Number.parseInt(await runOn('du', ['-s', '--block-size=1', folder]), 10)
          const files = Number.parseInt(await runOn('du', ['-s', '--inodes', folder]), 10)
          await parts.checkRoom(bytes, files)
          await runOn('cp', ['--archive', `${folder}/.`, target])
          await runOn('rm', ['--recursive', '--force', folder])
          return bytes
        },
        [Symbol.asyncDispose]: () => owned.disposeAsync(),
      }
    },
  }
}

const pullLimitMs = 1_800_000

const tarOptions = [
  ...['--extract', '--numeric-owner', '--same-owner', '--preserve-permissions'],
  // Untrusted layers must not set the xattrs of overlayfs.
  ...['--xattrs', '--xattrs-include=security.capability', '--xattrs-include=user.*'],
]

const Config = z.object({
  config: z.object({ Env: z.array(z.string()).nullish() }).nullish(),
  rootfs: z.object({ diff_ids: z.array(z.string().regex(/^sha256:[0-9a-f]{64}$/)).min(1) }),
})

/** Size limit in characters: with more, programs could not start. */
const maxVariables = 64 * 1024

function toImage(digest: string, text: string): Image {
  const { data } = Config.safeParse(parseJson(text))
  if (!data)
    throw new BuildError(
      'base',
      'Invalid image config: it is not JSON with a list of layers (rootfs.diff_ids)',
    )
  const variables = data.config?.Env ?? []
  if (variables.join('').length > maxVariables) {
    throw new BuildError('base', 'The variables of the image take more than 64 KiB')
  }
  const pairs = variables.flatMap((entry) => {
    const [, name, value = ''] = /^([^=\0]+)=([^\0]*)$/s.exec(entry) ?? []
    return name === undefined ? [] : [[name, value] as const]
  })
  return {
    digest,
    layers: data.rootfs.diff_ids.map((one) => one.slice('sha256:'.length)),
    envVars: Object.fromEntries(pairs),
  }
}

function authOf({ username, password = '' }: ImageSource, registry: string) {
  if (username === undefined) return { auths: {} }
  const auth = Buffer.from(`${username}:${password}`).toString('base64')
  return { auths: { [registry]: { auth } } }
}

function unreadable({ reference }: ImageSource, { stderr }: RunResult): BuildError {
  return cannotBeUsed(reference, readSkopeoError(stderr) || 'no reason is known')
}

function unusable({ reference }: ImageSource, { stderr }: RunResult): BuildError {
  const isFull = stderr.includes('No space left')
  return cannotBeUsed(reference, isFull ? 'it is too large' : 'a layer cannot be unpacked')
}

function cannotBeUsed(reference: string, reason: string): BuildError {
  return new BuildError('base', `The image ${reference} cannot be used: ${reason}`)
}
