import { Fault } from '@atoll/kit/fault'
import type { User } from './user.ts'

/** Finds an account in the texts of passwd(5) and group(5). Malformed lines are skipped, as libc does. */
export function findAccount(name: string, passwd: string, group: string): User | undefined {
  const entry = fieldsOf(passwd).find((fields) => fields[0] === name && fields.length >= 6)
  if (entry === undefined) return undefined
  const uid = parseId(entry[2])
  const gid = parseId(entry[3])
  if (uid === undefined || gid === undefined) {
    throw new Fault(
      'internal',
      'bad_account',
      `User '${name}' has an invalid UID or GID. Fix the entry in /etc/passwd.`,
    )
  }
  return { name, uid, gid, groups: groupsOf(name, gid, group), home: entry[5] || '/' }
}

function groupsOf(name: string, primary: number, group: string): number[] {
  const groups = new Set([primary])
  for (const [, , id, members = ''] of fieldsOf(group)) {
    const gid = parseId(id)
    if (gid !== undefined && members.split(',').includes(name)) groups.add(gid)
  }
  return [...groups]
}

function fieldsOf(text: string): string[][] {
  return text.split('\n').map((line) => line.split(':'))
}

/** IDs are 32-bit. The largest value is rejected: setresuid(2) reads it as "no change". */
function parseId(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d{1,10}$/.test(text)) return undefined
  const id = Number(text)
  return id < 0xffff_ffff ? id : undefined
}
