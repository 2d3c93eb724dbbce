/**
 * Installs a CA where programs of common distributions look for it. Threats: root in the sandbox can replace these
 * files by anything. Only regular files are read, and each step may fail on its own. A hung file system is left to
 * the caller's timeout, so all I/O uses the thread pool.
 */
import { lstat, mkdir, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { hasOtherAuthorities, replaceAuthority } from '../../domain/trust/ca-bundle.ts'
import type { InstalledCa } from '../../domain/trust/installed-ca.ts'
import { replaceFile, replaceLink } from '../files/replace-atomically.ts'
import { readSmallFile } from '../files/read-small-file.ts'

/**
 * Returns an installer that never rejects and reports problems instead. `root` is the root of the file system to
 * change.
 */
export function caInstaller(root = '/') {
  const certificate = join(root, 'usr/local/share/ca-certificates/atoll-egress.crt')
  const folder = join(root, 'etc/ssl/certs')
  const link = join(folder, subjectHashLink)
  return async (
    caBundle: string,
  ): Promise<InstalledCa & { readonly problems: readonly string[] }> => {
    const problems: string[] = []
    const attempt: Attempt = (path, action) =>
      action().catch((cause: unknown) => {
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

type Attempt = <T>(path: string, action: () => Promise<T>) => Promise<T | undefined>

/** OpenSSL's subject hash of `CN=atoll sandbox egress`, the subject of all egress CAs. */
const subjectHashLink = '2d824785.0'

const sizeLimitBytes = 8 * 1024 * 1024

interface Change {
  readonly caBundle: string
  readonly old: string
}

/**
 * Returns the first bundle that also contains other CAs. A bundle with ours alone would make a program distrust all
 * other servers.
 */
async function addToSystemBundles(change: Change, root: string, attempt: Attempt) {
  let fullBundle: string | undefined
  // Sequential, because both paths may name the same file.
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

/** Debian's path, which most distributions have at least as a link, and Fedora's. */
const systemBundles = [
  { path: 'etc/ssl/certs/ca-certificates.crt', createIfMissing: true },
  { path: 'etc/pki/tls/certs/ca-bundle.crt', createIfMissing: false },
]

/** Returns whether the bundle contains other CAs too. */
async function addToBundle(path: string, before: string, change: Change): Promise<boolean> {
  const after = replaceAuthority(before, change)
  if (after !== before) await replaceFile(path, after)
  return hasOtherAuthorities(after)
}

/**
 * Resolves the path of a bundle; undefined if there is none. Some distributions use a symlink here. It is followed
 * only into folders for such files: any other target would let root in the sandbox choose the file that is
 * overwritten.
 */
async function resolveBundle(path: string, root: string): Promise<string | undefined> {
  const resolved = await realpath(path).catch(ignoreMissing)
  if (resolved === undefined) {
    if (await lstat(path).catch(ignoreMissing)) throw new Error('is a broken symlink')
    return undefined
  }
  if (['etc', 'usr/share'].some((home) => resolved.startsWith(`${join(root, home)}/`)))
    return resolved
  throw new Error('is a symlink to a folder that is not for certificates')
}

function ignoreMissing(thrown: NodeJS.ErrnoException): undefined {
  if (thrown.code !== 'ENOENT') throw thrown
}
