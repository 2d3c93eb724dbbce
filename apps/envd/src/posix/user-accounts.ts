import { findAccount } from '../domain/access/accounts.ts'
import type { Users } from '../domain/access/user.ts'
import { cachedFile } from '../linux/cached-file.ts'

/** Looks accounts up in passwd(5) and group(5) files. */
export function passwdUsers(files: { readonly passwd: string; readonly group: string }): Users {
  const passwd = cachedFile(files.passwd, (text) => text)
  const group = cachedFile(files.group, (text) => text)
  return {
    async find(name) {
      return findAccount(name, passwd(), group())
    },
  }
}
