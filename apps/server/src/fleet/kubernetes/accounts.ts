/** Kubernetes service accounts whose pods may join the fleet. */
import type { MemberRole } from '../identity/join-token.ts'

/** Roles by account, `namespace/name`. */
export type JoinAccounts = ReadonlyMap<string, MemberRole>

const pattern = /^(edge|node)=([a-z0-9]([-a-z0-9]*[a-z0-9])?)\/([a-z0-9]([-.a-z0-9]*[a-z0-9])?)$/

/** Parses `role=namespace/name`, comma separated. Returns undefined if the text is invalid. */
export function parseAccounts(text: string): JoinAccounts | undefined {
  const accounts = new Map<string, MemberRole>()
  for (const part of text.split(',')) {
    const [, role, namespace, , name] = pattern.exec(part.trim()) ?? []
    const account = `${namespace}/${name}`
    // One account with two roles would let an edge become a node.
    if ((role !== 'edge' && role !== 'node') || accounts.has(account)) return undefined
    accounts.set(account, role)
  }
  return accounts
}
