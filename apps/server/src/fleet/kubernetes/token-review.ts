/** Asks the API server of the cluster whose token this is. */
import { readFile } from 'node:fs/promises'
import { request } from 'node:https'
import { join } from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { z } from 'zod'

/** How a pod reaches the API server of its cluster. */
export interface ClusterAccess {
  readonly host: string
  readonly port: number
  /** Folder with `token` and `ca.crt` of this pod's own service account. */
  readonly accountDir: string
}

export interface ReviewedPod {
  /** `namespace/name` of the service account. */
  readonly account: string
  readonly podUid: string
}

/** Audience of the tokens with which pods join. The API server accepts tokens of other audiences, and this file does not. */
export const joinAudience = 'atoll-fleet'

const limitMs = 10_000
const maxReplyBytes = 256 * 1024
const podUidKey = 'authentication.kubernetes.io/pod-uid'

const Review = z.object({
  status: z.object({
    authenticated: z.boolean().default(false),
    audiences: z.array(z.string()).default([]),
    user: z
      .object({
        username: z.string().default(''),
        extra: z.record(z.string(), z.array(z.string())).default({}),
      })
      .optional(),
  }),
})

/** Returns undefined for a token that is invalid, of another audience, or bound to no pod. */
export async function reviewToken(
  cluster: ClusterAccess,
  token: string,
): Promise<ReviewedPod | undefined> {
  const body = JSON.stringify({
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    spec: { token, audiences: [joinAudience] },
  })
  const { status, text } = await post(cluster, body)
  if (status !== 200 && status !== 201) {
    throw new Error(`the Kubernetes API server answers a token review with status ${status}`)
  }
  const { authenticated, audiences, user } = Review.parse(JSON.parse(text)).status
  const [, namespace, name] =
    /^system:serviceaccount:([^:]+):([^:]+)$/.exec(user?.username ?? '') ?? []
  const [podUid] = user?.extra[podUidKey] ?? []
  if (!authenticated || !audiences.includes(joinAudience)) return undefined
  if (namespace === undefined || name === undefined || podUid === undefined) return undefined
  return { account: `${namespace}/${name}`, podUid }
}

async function post({ host, port, accountDir }: ClusterAccess, body: string) {
  // Read anew for each call: Kubernetes replaces both files.
  const [token, ca] = await Promise.all([
    readFile(join(accountDir, 'token'), 'utf8'),
    readFile(join(accountDir, 'ca.crt'), 'utf8'),
  ])
  const signal = AbortSignal.timeout(limitMs)
  return new Promise<{ readonly status: number; readonly text: string }>((resolve, reject) => {
    const outgoing = request(
      {
        ...{ host, port, ca, signal, method: 'POST', agent: false },
        path: '/apis/authentication.k8s.io/v1/tokenreviews',
        headers: {
          Authorization: `Bearer ${token.trim()}`,
          'Content-Type': 'application/json',
          Accept: 'application/json',
        },
      },
      (reply) => {
        let received = 0
        reply.on('data', (chunk: Buffer) => {
          received += chunk.length
          if (received > maxReplyBytes) reply.destroy(new Error('the token review is too large'))
        })
        readText(reply).then(
          (text) => resolve({ status: reply.statusCode ?? 0, text }),
          (error: unknown) => reject(error),
        )
      },
    )
    outgoing.once('error', reject)
    outgoing.end(body)
  })
}
