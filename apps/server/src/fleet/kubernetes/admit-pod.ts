/**
 * Lets pods join with the token of their service account. Threats: anyone who reaches the api can send a token, so the API
 * server of the cluster judges each, and only a few at a time; a stolen token must not add a second member, so each pod
 * joins once.
 */
import { createHmac } from 'node:crypto'
import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import type { MemberRole } from '../identity/join-token.ts'
import type { JoinAccounts } from './accounts.ts'
import { reviewToken } from './token-review.ts'
import type { ClusterAccess } from './token-review.ts'

/** Returns the secret of a join token that only this pod gets. Throws a fault when the pod may not join. */
export type AdmitPod = (token: string, role: MemberRole) => Promise<string>

export interface PodAdmissionParts {
  readonly accounts: JoinAccounts
  readonly cluster: ClusterAccess
  /** Key of the fleet's authority, which all apis share. */
  readonly authorityKey: string
  readonly allowOnce: (secret: string, role: MemberRole) => Promise<void>
  readonly log: Logger
}

const maxReviews = 8

export function createPodAdmission(parts: PodAdmissionParts): AdmitPod {
  const { accounts, cluster, authorityKey, allowOnce, log } = parts
  let reviews = 0
  return async (token, role) => {
    if (reviews >= maxReviews) throw tooMany()
    reviews += 1
    try {
      const pod = await reviewToken(cluster, token).catch((error: unknown) => {
        log.warn({ err: error, event: 'fleet.review' }, 'the token of a pod was not reviewed')
        throw unreviewed(error)
      })
      if (!pod) throw refused('The token is not valid for this cluster, or not bound to a pod')
      if (accounts.get(pod.account) !== role) {
        throw refused(`The service account ${pod.account} may not join as ${role}`)
      }
      // Guessing the ID of a pod must not be enough, and all apis must come to the same secret.
      const secret = createHmac('sha256', authorityKey).update(`pod ${pod.podUid}`).digest('hex')
      await allowOnce(secret, role)
      return secret
    } finally {
      reviews -= 1
    }
  }
}

/** Used when no service account may join. */
export const admitNoPod: AdmitPod = async () => {
  throw refused('This fleet takes no service accounts: set ATOLL_FLEET_KUBERNETES_ACCOUNTS of apis')
}

function refused(message: string): Fault {
  return new Fault('forbidden', 'join_token', message)
}

function unreviewed(cause: unknown): Fault {
  const message = 'The Kubernetes API server did not review the token; try again'
  return new Fault('unavailable', 'token_review', message, { cause })
}

function tooMany(): Fault {
  const message = `${maxReviews} pods are joining at this moment; try again`
  return new Fault('exhausted', 'token_review', message)
}
