import type { RuleFilling } from '../app/network/fill-rules.ts'
import { ingressOf, rulesOf } from '../domain/network/network.ts'
import type { NetworkAccessOf, SandboxNetwork } from '../domain/network/network.ts'
import { envdAccessToken, trafficAccessToken } from '../domain/teams/key.ts'
import type { TokensOf } from '../http/sandboxes/sandbox-view.ts'

interface TokenOwner {
  readonly id: string
  readonly secure: boolean
}

/** Access tokens and network rules of a sandbox, derived from its record. */
export interface SandboxAccess {
  /** Returns the envd access token of any sandbox, secure or not. */
  envdTokenOf(id: string): string
  /** Returns the envd access token if the sandbox requires one. */
  requiredTokenOf(sandbox: TokenOwner): string | undefined
  readonly tokensOf: TokensOf
  readonly networkAccessOf: NetworkAccessOf
}

export function createSandboxAccess(
  tokenSeed: string,
  rules: RuleFilling,
  domain?: string,
): SandboxAccess {
  const envdTokenOf = (id: string) => envdAccessToken(tokenSeed, id)
  const requiredTokenOf = ({ id, secure }: TokenOwner) => (secure ? envdTokenOf(id) : undefined)
  const ingressTo = (sandbox: { id: string; network: SandboxNetwork | undefined }) =>
    ingressOf(sandbox, trafficAccessToken(tokenSeed, sandbox.id))
  return {
    envdTokenOf,
    requiredTokenOf,
    tokensOf: (sandbox) => ({
      envdAccessToken: requiredTokenOf(sandbox),
      trafficAccessToken: ingressTo(sandbox).trafficAccessToken,
      domain,
    }),
    networkAccessOf: async (sandbox) => ({
      network: await rules.fill(sandbox.teamId, rulesOf(sandbox)),
      ingress: ingressTo(sandbox),
    }),
  }
}
