/**
 * Puts an authority where programs of the usual distributions look for them. Threats: whoever is root in the sandbox can
 * put anything in the place of these files. Nothing is waited for but regular files, and each is tried on its own; a
 * file system that does not answer is the caller's to give up on, so all is done by the thread pool.
 */
import { lstat, mkdir, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { hasOtherAuthorities, replaceAuthority } from '../../domain/trust/ca-bundle.ts'
import type { InstalledCa } from '../../domain/trust/installed-ca.ts'
import { replaceFile, replaceLink } from '../files/replace-atomically.ts'
import { readSmallFile } from '../files/read-small-file.ts'

/** Never fails; tells what did. `root` is the folder that everything is below. */
export function caInstaller(root = '/') {
  const certificate = join(root, 'usr/local/share/ca-certificates/atoll-egress.crt')
  const folder = join(root, 'etc/ssl/certs')
  const link = join(folder, subjectHashLink)
  return async (
    caBundle: string,
  ): Promise<InstalledCa & { readonly problems: readonly string[] }> => {
    const problems: string[] = []
    const attempt: Attempt = (path, act) =>
      act().catch((cause: unknown) => {
        problems.push(`${path}: ${cause instanceof Error ? cause.message : String(cause)}`)
        return undefined
      })
    const old = await readSmallFile(certificate, sizeLimitBytes).catch(() => '')
    await attempt(folder, () => mkdir(folder, { recursive: true }))
    const [written, bundle] = await Promise.all([
      attempt(certificate, async () => {
        await mkdir(dirname(certificate), { recursive: true })
        await replaceFile(certificate, caBundle)
        return certificate
      }),
      addToSystemBundles({ caBundle, old }, root, attempt),
      attempt(link, () => replaceLink(link, certificate)),
    ])
    return { certificate: written, bundle, problems }
  }
}

type Attempt = <T>(path: string, act: () => Promise<T>) => Promise<T | undefined>

/** What OpenSSL calls `CN=atoll sandbox egress`, the subject of all our authorities. */
const subjectHashLink = '2d824785.0'

const sizeLimitBytes = 8 * 1024 * 1024

interface Change {
  readonly caBundle: string
  readonly old: string
}

/**
 * The first list that has others' authorities too. One with ours alone is no use to a program that brings its own: it
 * would trust nobody else.
 */
async function addToSystemBundles(change: Change, root: string, attempt: Attempt) {
  let fullBundle: string | undefined
  // One after the other, since they may be the same file.
  for (const { path, createIfMissing } of systemBundles) {
    const bundle = join(root, path)
    const isFull = await attempt(bundle, async () => {
      const resolved = await resolveBundle(bundle, root)
      if (!resolved) return createIfMissing && addToBundle(bundle, '', change)
      return addToBundle(resolved, await readSmallFile(resolved, sizeLimitBytes), change)
    })
    if (isFull) fullBundle ??= bundle
  }
  return fullBundle
}

/** Debian's, where most others have a link at least, and Fedora's. */
const systemBundles = [
  { path: 'etc/ssl/certs/ca-certificates.crt', createIfMissing: true },
  { path: 'etc/pki/tls/certs/ca-bundle.crt', createIfMissing: false },
]

/** Whether others' authorities are in it too. */
async function addToBundle(path: string, before: string, change: Change): Promise<boolean> {
  const after = replaceAuthority(before, change)
  if (after !== before) await replaceFile(path, after)
  return hasOtherAuthorities(after)
}

/**
 * Where a list really is; undefined when there is none. Some distributions have a link in its place, so it is followed,
 * but only to where a distribution keeps such files: a link to elsewhere was made by somebody who wants another file
 * written.
 */
async function resolveBundle(path: string, root: string): Promise<string | undefined> {
  const resolved = await realpath(path).catch(ifMissing)
  if (resolved === undefined) {
    if (await lstat(path).catch(ifMissing)) throw new Error('is a link to nothing')
    return undefined
  }
  if (['etc', 'usr/share'].some((home) => resolved.startsWith(`${join(root, home)}/`)))
    return resolved
  throw new Error('is a link to a place that is not for it')
}

function ifMissing(thrown: NodeJS.ErrnoException): undefined {
  if (thrown.code !== 'ENOENT') throw thrown
}
