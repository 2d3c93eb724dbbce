import { open } from 'node:fs/promises'
import { findAccount } from '../domain/accounts.ts'
import type { Users } from '../domain/user.ts'

/** Accounts from passwd(5) and group(5) files. They are read again only after they changed. */
export function fileUsers(files: { readonly passwd: string; readonly group: string }): Users {
  const passwd = createCachedFile(files.passwd)
  const group = createCachedFile(files.group)
  return {
    async find(name) {
      return findAccount(name, await passwd(), await group())
    },
  }
}

function createCachedFile(path: string): () => Promise<string> {
  let version = ''
  let text = ''
  return async () => {
    await using file = await open(path, 'r').catch(absent)
    if (file === undefined) return ''
    const { mtimeNs, ino, size } = await file.stat({ bigint: true })
    const found = `${ino}:${mtimeNs}:${size}`
    if (found !== version) {
      const buffer = Buffer.alloc(Math.min(Number(size), sizeLimitBytes))
      const { bytesRead } = await file.read(buffer, 0, buffer.length, 0)
      text = buffer.toString('utf8', 0, bytesRead)
      version = found
    }
    return text
  }
}

/** Whoever is root in the sandbox can make these files as large as the disk. */
const sizeLimitBytes = 4 * 1024 * 1024

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
